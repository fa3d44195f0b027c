-- The messages of a session form a tree: each knows the one before it on its line. Those that are there form one line, in
-- their order. Their checksums are renewed in the same transaction, from the program.
ALTER TABLE message ADD COLUMN prev TEXT NOT NULL DEFAULT '';
