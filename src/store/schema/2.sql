ALTER TABLE results ADD COLUMN line TEXT NOT NULL DEFAULT '';
ALTER TABLE results ADD COLUMN started TEXT NOT NULL DEFAULT '';
ALTER TABLE results ADD COLUMN script TEXT NOT NULL DEFAULT '';
UPDATE results SET line = (SELECT series.line FROM series WHERE series.id = results.series),
  started = (SELECT runs.started FROM runs WHERE runs.id = results.run);
CREATE INDEX results_line ON results (line, started, run);
ALTER TABLE series ADD COLUMN runs BIGINT NOT NULL DEFAULT 0;
ALTER TABLE series ADD COLUMN first TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN latest TEXT NOT NULL DEFAULT '';
UPDATE series SET runs = (SELECT COUNT(*) FROM results WHERE results.series = series.id),
  first = COALESCE((SELECT MIN(results.started) FROM results WHERE results.series = series.id), ''),
  latest = COALESCE((SELECT MAX(results.started) FROM results WHERE results.series = series.id), '');
CREATE TABLE accepted (
  run TEXT NOT NULL,
  contender TEXT NOT NULL,
  line TEXT NOT NULL,
  accepted TEXT NOT NULL,
  note TEXT NOT NULL,
  PRIMARY KEY (run, contender)
);
CREATE INDEX accepted_line ON accepted (line);
CREATE TABLE skipped (
  directory TEXT NOT NULL,
  kept_on TEXT NOT NULL,
  reason TEXT NOT NULL,
  seen TEXT NOT NULL,
  PRIMARY KEY (directory, kept_on)
);
UPDATE schema_version SET version = 2;
