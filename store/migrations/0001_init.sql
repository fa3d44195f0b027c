-- Every noun is one JSON column, as the API shows it, plus the columns that are asked for. seq is the order of
-- insertion and survives updates. An index on a column ends in the table's rowid, which is seq, so it yields rows in order.
PRAGMA application_id = 1128615508; -- "CENT"

CREATE TABLE journal (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  time    INTEGER NOT NULL, -- Unix milliseconds
  type    TEXT NOT NULL,
  mission TEXT NOT NULL,
  session TEXT NOT NULL,
  task    TEXT NOT NULL,
  data    TEXT NOT NULL
);
CREATE INDEX journal_mission ON journal (mission, seq);

CREATE TABLE mission (
  seq    INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL,
  data   TEXT NOT NULL
);

CREATE TABLE session (
  seq     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  mission TEXT NOT NULL,
  data    TEXT NOT NULL
);
CREATE INDEX session_mission ON session (mission);

CREATE TABLE message (
  seq      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  session  TEXT NOT NULL,
  origin   TEXT NOT NULL,    -- not part of OpenCode's shape, nor is unpriced
  unpriced INTEGER NOT NULL,
  data     TEXT NOT NULL
);
CREATE INDEX message_session ON message (session);

CREATE TABLE part (
  seq      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  session  TEXT NOT NULL,
  message  TEXT NOT NULL,
  unpriced INTEGER NOT NULL,
  data     TEXT NOT NULL
);
CREATE INDEX part_session ON part (session);

CREATE TABLE task (
  seq     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  mission TEXT NOT NULL,
  parent  TEXT NOT NULL, -- the session that delegated it
  call    TEXT NOT NULL, -- the tool call that did
  status  TEXT NOT NULL,
  data    TEXT NOT NULL
);
CREATE INDEX task_mission ON task (mission);
CREATE INDEX task_call ON task (parent, call);

CREATE TABLE receipt (
  seq     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  mission TEXT NOT NULL,
  task    TEXT NOT NULL,
  data    TEXT NOT NULL
);
CREATE INDEX receipt_mission ON receipt (mission);

CREATE TABLE delivery (
  seq     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  mission TEXT NOT NULL,
  session TEXT NOT NULL,    -- the receiver
  task    TEXT NOT NULL,
  taken   INTEGER NOT NULL, -- Unix milliseconds, 0 while pending
  data    TEXT NOT NULL
);
CREATE INDEX delivery_mission ON delivery (mission);
CREATE INDEX delivery_pending ON delivery (session) WHERE taken = 0;

CREATE TABLE ask (
  seq      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  mission  TEXT NOT NULL,
  answered INTEGER NOT NULL, -- Unix milliseconds, 0 while open
  data     TEXT NOT NULL
);
CREATE INDEX ask_mission ON ask (mission);
CREATE INDEX ask_open ON ask (seq) WHERE answered = 0;

CREATE TABLE serial (
  mission TEXT NOT NULL,
  address TEXT NOT NULL, -- the parent's
  next    INTEGER NOT NULL,
  PRIMARY KEY (mission, address)
) WITHOUT ROWID;
