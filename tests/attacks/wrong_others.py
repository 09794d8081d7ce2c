from tests.attacks.tables import Script
SCRIPTS: list[Script] = []
