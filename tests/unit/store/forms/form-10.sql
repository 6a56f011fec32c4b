-- SPDX-License-Identifier: Apache-2.0
-- A store as form 10 has it. Kept as it was written: newer vfmgrds must read it.
PRAGMA application_id = 1986424167;
PRAGMA user_version = 10;
BEGIN TRANSACTION;
CREATE TABLE attachments (id TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
INSERT INTO "attachments" VALUES('00000001','{"address":"192.168.100.2","baseline":{"mac":"00:00:00:00:00:00"},"config":false,"created_at":"2026-01-31T12:00:00.123Z","id":"00000001","live":true,"settings":{"mac":"02:00:00:00:00:01"},"spec":{"best_effort":[],"network":"train","persistence":"auto","pf":"0000:01:00.0","settings":{"trust":true},"verify":"none","verify_timeout_seconds":120,"vm":"vm1"},"state":"attaching","verification":null,"vf":{"index":1,"pf":"0000:01:00.0"},"vf_pci":"0000:01:10.0","vm":"vm1","vm_uuid":"11111111-1111-1111-1111-111111111111"}');
INSERT INTO "attachments" VALUES('00000002','{"address":"192.168.100.2","baseline":{"mac":"00:00:00:00:00:00"},"config":false,"created_at":"2026-01-31T12:00:00.123Z","id":"00000002","live":true,"settings":{"mac":"02:00:00:00:00:01"},"spec":{"best_effort":[],"network":"train","persistence":"auto","pf":"0000:01:00.0","settings":{"trust":true},"verify":"none","verify_timeout_seconds":120,"vm":"vm1"},"state":"detaching","verification":null,"vf":{"index":2,"pf":"0000:01:00.0"},"vf_pci":"0000:01:10.0","vm":"vm1","vm_uuid":"11111111-1111-1111-1111-111111111111"}');
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, who TEXT NOT NULL,
    request_id TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
    outcome TEXT NOT NULL, refused INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 1) STRICT;
INSERT INTO "audit" VALUES(1,0,'','','','','',0,1);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, pf TEXT NOT NULL, vf INTEGER,
    document TEXT NOT NULL, attachment TEXT, detached INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "events" VALUES(7,'0000:01:00.0',1,'{"number":7,"at":"2026-01-31T12:00:00.000Z","kind":"drift","pf":"0000:01:00.0","vf":1,"attachment":"00000001","vm":"vm1","operation":null,"because_of":null,"detail":"VF 1, lent to VM vm1, is gone","certificate":null}','00000001',0);
INSERT INTO "events" VALUES(8,'0000:01:00.0',1,'{"number":8,"at":"2026-01-31T12:00:02.000Z","kind":"detached","pf":"0000:01:00.0","vf":1,"attachment":"00000009","vm":"vm1","operation":"00000000000000000000000000000004","because_of":null,"detail":"reset, and as it was before","certificate":{"vf":{"pf":"0000:01:00.0","index":1},"vf_pci":"0000:01:10.0","attachment":"00000009","vm":"vm1","settings":{"mac":"00:00:00:00:00:00"},"driver":null,"observed_at":"2026-01-31T12:00:02.000Z","attached":{"at":"2026-01-31T12:00:00.000Z","operation":"00000000000000000000000000000003","requested_by":"uid:0"},"detached":{"at":"2026-01-31T12:00:01.000Z","operation":"00000000000000000000000000000004","requested_by":"token:11111111"},"reset":{"method":"flr","done_at":"2026-01-31T12:00:01.500Z"},"restored":{"was":{"mac":"02:00:00:00:00:01"},"is":{"mac":"00:00:00:00:00:00"}},"rotated":{"mac":{"was":"02:00:00:00:00:01","is":"00:00:00:00:00:00"},"node_guid":null,"port_guid":null},"counters":null}}','00000009',1);
CREATE TABLE firmware_tries (card TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
INSERT INTO "firmware_tries" VALUES('0000:01:00.0','{"settings":{"NUM_OF_VFS":16},"boots":{"NUM_OF_VFS":["5f0cb0d4-0d3c-4f7a-9d39-9e0b8b1a3a11"]}}');
CREATE TABLE host (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE idempotency (
    key TEXT PRIMARY KEY, request_hash TEXT NOT NULL, operation TEXT NOT NULL,
    created_ms INTEGER NOT NULL) STRICT;
INSERT INTO "idempotency" VALUES('key','hash','00000000000000000000000000000001',1769860800000);
CREATE TABLE operations (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, finished INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, document TEXT NOT NULL) STRICT;
INSERT INTO "operations" VALUES(1,'00000000000000000000000000000001',0,1000,'{"created_at":"1970-01-01T00:00:01.000Z","finished_at":null,"id":"00000000000000000000000000000001","kind":"attach","problem":null,"requested_by":"uid:0","state":"running","steps":[{"remarks":[],"sentence":"bind VF 2 to vfio-pci","state":"done"}],"subject":"/v1/attachments/00000002"}');
INSERT INTO "operations" VALUES(2,'00000000000000000000000000000002',1,1000,'{"created_at":"1970-01-01T00:00:01.000Z","finished_at":"1970-01-01T00:00:01.001Z","id":"00000000000000000000000000000002","kind":"attach","problem":{"cause":[{"call":"c","code":"EIO","text":"t"}],"code":"kernel_refused","detail":"d","remedy":"r","status":502,"title":"Kernel refused","type":"https://vfmgr.example/problems/kernel-refused"},"requested_by":"uid:0","state":"failed","steps":[{"remarks":[],"sentence":"bind VF 2 to vfio-pci","state":"done"}],"subject":"/v1/attachments/00000001"}');
CREATE TABLE pfs (pci TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
INSERT INTO "pfs" VALUES('0000:01:00.0','{"base":{"addresses":["fe80::1"],"mtu":1500,"rdma":false,"up":true},"revision":3,"spec":{"mode":"manage","networks":[{"host_address":"192.168.100.1","mtu":1500,"name":"train","prefix":"192.168.100.0/24","rdma":"auto","vlan":100}],"num_vfs":7,"vf_driver":"vfio-pci"}}');
CREATE TABLE pf_identities (pci TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
INSERT INTO "pf_identities" VALUES('0000:01:00.0','{"guid":"00:00:00:00:00:00:00:07","mac":"52:54:00:00:01:01","serial":"MT2108X00001"}');
CREATE TABLE quarantine (
    pf TEXT NOT NULL, vf INTEGER NOT NULL, document TEXT NOT NULL, PRIMARY KEY (pf, vf)) STRICT;
INSERT INTO "quarantine" VALUES('0000:01:00.0',5,'{"attachment":{"address":"192.168.100.2","baseline":{"mac":"00:00:00:00:00:00"},"config":false,"created_at":"2026-01-31T12:00:00.123Z","id":"00000005","live":true,"settings":{"mac":"02:00:00:00:00:01"},"spec":{"best_effort":[],"network":"train","persistence":"auto","pf":"0000:01:00.0","settings":{"trust":true},"verify":"none","verify_timeout_seconds":120,"vm":"vm1"},"state":"attaching","verification":null,"vf":{"index":5,"pf":"0000:01:00.0"},"vf_pci":"0000:01:10.0","vm":"vm1","vm_uuid":"11111111-1111-1111-1111-111111111111"},"reason":"the MAC could not be put back","residue":["mac 02:00:00:00:00:01"],"since":"2026-01-31T12:00:00.456Z","vf":{"index":5,"pf":"0000:01:00.0"}}');
CREATE TABLE rdma_links (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
INSERT INTO "rdma_links" VALUES('rxe0','{"link":{"name":"rxe0","ifname":"bond0","type":"rxe"},"revision":1}');
CREATE TABLE states (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (operation, seq)) STRICT;
INSERT INTO "states" VALUES('00000000000000000000000000000001',1,'done');
INSERT INTO "states" VALUES('00000000000000000000000000000001',2,'intended');
CREATE TABLE steps (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL, step TEXT NOT NULL, undo TEXT NOT NULL,
    PRIMARY KEY (operation, seq)) STRICT;
INSERT INTO "steps" VALUES('00000000000000000000000000000001',1,'{"step":"bind_vfs","pf":"0000:01:00.0","vfs":[2],"driver":"vfio-pci"}','[{"step":"bind_vfs","pf":"0000:01:00.0","vfs":[2]}]');
INSERT INTO "steps" VALUES('00000000000000000000000000000001',2,'{"step":"configure_vfs","pf":"0000:01:00.0","changes":[{"index":2,"settings":{"mac":"00:00:00:00:00:00"}}],"best_effort":["trust"]}','[]');
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
    description TEXT NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER) STRICT;
INSERT INTO "tokens" VALUES('11111111','a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3','admin','the orchestrator',1769860800000,NULL);
CREATE TABLE verifications (
    number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, attachment TEXT NOT NULL,
    started_ms INTEGER NOT NULL, document TEXT NOT NULL, pf TEXT, vf INTEGER) STRICT;
INSERT INTO "verifications" VALUES(1,'0000000000000000000000000000000a','00000001',1769860801000,'{"attachment":"00000001","detail":"","finished_at":null,"path":"internal_switch","peer_gid":null,"remedy":"","run":"0000000000000000000000000000000a","started_at":"2026-01-31T12:00:01.000Z","tests":[{"by":"guest","bytes_checked":0,"detail":"","figures":{"p50_us":180.25},"mismatches":0,"name":"rc_ping","remedy":"","verdict":"pending"}],"verdict":"pass","vf_mac":null}','0000:01:00.0',1);
CREATE INDEX operations_by_age ON operations (created_ms);
CREATE INDEX verifications_by_attachment ON verifications (attachment, started_ms);
CREATE INDEX verifications_by_vf ON verifications (pf, vf, started_ms);
CREATE INDEX audit_by_age ON audit (at_ms);
CREATE INDEX audit_by_refusal ON audit (refused, number);
CREATE INDEX events_by_attachment ON events (attachment, number);
CREATE INDEX events_by_vf ON events (pf, vf, detached, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',1);
INSERT INTO "sqlite_sequence" VALUES('events',8);
COMMIT;
