-- Every row gets a checksum over its table's name and its columns, so that damage is found and never served. The rows
-- that are there get theirs in the same transaction, from the program.
ALTER TABLE journal  ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mission  ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session  ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message  ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE part     ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task     ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE receipt  ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ask      ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE serial   ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;

-- One row: what the file knows of itself and of who writes it.
CREATE TABLE host (
  seq     INTEGER PRIMARY KEY,
  epoch   INTEGER NOT NULL, -- how often a process has claimed the file
  pid     INTEGER NOT NULL, -- who did last
  boot    TEXT NOT NULL,    -- the boot it ran in, where the system has an id for that
  since   INTEGER NOT NULL, -- Unix milliseconds
  ticks   INTEGER NOT NULL, -- commits that wrote no journal row
  floor   INTEGER NOT NULL, -- the journal goes on above this number, whatever rows it still has
  shape   INTEGER NOT NULL, -- checksum of the schema's text
  ballast BLOB NOT NULL DEFAULT x'', -- what a probe of the disk writes and removes; not summed
  sum     INTEGER NOT NULL
);
