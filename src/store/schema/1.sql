CREATE TABLE schema_version (version BIGINT NOT NULL);
INSERT INTO schema_version (version) VALUES (1);
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  kept_on TEXT NOT NULL,
  directory TEXT NOT NULL,
  stamp TEXT NOT NULL,
  started TEXT NOT NULL,
  host TEXT NOT NULL,
  machine TEXT NOT NULL,
  bakeoff_version TEXT NOT NULL,
  commit_hash TEXT NOT NULL,
  branch TEXT NOT NULL,
  dirty BIGINT NOT NULL,
  recipe TEXT NOT NULL,
  recipe_hash TEXT NOT NULL,
  outcome TEXT NOT NULL,
  note TEXT NOT NULL,
  indexed TEXT NOT NULL,
  UNIQUE (directory, kept_on)
);
CREATE INDEX runs_started ON runs (started, id);
CREATE TABLE series (
  id TEXT PRIMARY KEY,
  line TEXT NOT NULL,
  name TEXT NOT NULL,
  recipe TEXT NOT NULL,
  contender TEXT NOT NULL,
  framework TEXT NOT NULL,
  settings TEXT NOT NULL,
  workload TEXT NOT NULL,
  training TEXT NOT NULL,
  machine TEXT NOT NULL,
  packages TEXT NOT NULL,
  measured TEXT NOT NULL
);
CREATE INDEX series_line ON series (line);
CREATE TABLE results (
  run TEXT NOT NULL,
  contender TEXT NOT NULL,
  series TEXT NOT NULL,
  seconds DOUBLE PRECISION,
  low DOUBLE PRECISION,
  high DOUBLE PRECISION,
  verdict TEXT NOT NULL,
  heats BIGINT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (run, contender)
);
CREATE INDEX results_series ON results (series);
