// SPDX-License-Identifier: Apache-2.0
// The tables, as a list of migrations. A migration that was released is never edited.
#include <fmt/format.h>

#include <array>

#include "vfmgr/store/database.hpp"

namespace vfmgr {

namespace {

// Columns exist for what is searched or sorted by; the rest is the value's own JSON.
constexpr char const* version_1 = R"sql(
CREATE TABLE host (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE pfs (pci TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE attachments (id TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE quarantine (
    pf TEXT NOT NULL, vf INTEGER NOT NULL, document TEXT NOT NULL, PRIMARY KEY (pf, vf)) STRICT;
CREATE TABLE operations (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, finished INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, document TEXT NOT NULL) STRICT;
CREATE INDEX operations_by_age ON operations (created_ms);
CREATE TABLE journal (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL, state TEXT NOT NULL, step TEXT NOT NULL, undo TEXT NOT NULL,
    PRIMARY KEY (operation, seq)) STRICT;
)sql";

constexpr char const* version_2 = R"sql(
CREATE TABLE verifications (
    number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, attachment TEXT NOT NULL,
    started_ms INTEGER NOT NULL, document TEXT NOT NULL) STRICT;
CREATE INDEX verifications_by_attachment ON verifications (attachment, started_ms);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
    description TEXT NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER) STRICT;
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, who TEXT NOT NULL,
    request_id TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
    outcome TEXT NOT NULL) STRICT;
CREATE INDEX audit_by_age ON audit (at_ms);
CREATE TABLE idempotency (
    key TEXT PRIMARY KEY, request_hash TEXT NOT NULL, operation TEXT NOT NULL,
    created_ms INTEGER NOT NULL) STRICT;
)sql";

// SQLite writes a row as a whole. A step and its undo can be long and never change; the state does.
constexpr char const* version_3 = R"sql(
CREATE TABLE steps (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL, step TEXT NOT NULL, undo TEXT NOT NULL,
    PRIMARY KEY (operation, seq)) STRICT;
INSERT INTO steps SELECT operation, seq, step, undo FROM journal;
CREATE TABLE states (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (operation, seq)) STRICT;
INSERT INTO states SELECT operation, seq, state FROM journal;
DROP TABLE journal;
)sql";

// A VF's history outlives its attachments. The VF of an earlier run is known through its
// attachment; a run without one gets no VF. load() reports a document that can't be read.
constexpr char const* version_4 = R"sql(
ALTER TABLE verifications ADD COLUMN pf TEXT;
ALTER TABLE verifications ADD COLUMN vf INTEGER;
UPDATE verifications SET pf = lease.pf, vf = lease.vf FROM (
    SELECT id, document ->> '$.vf.pf' AS pf, document ->> '$.vf.index' AS vf
        FROM attachments WHERE json_valid(document)
    UNION ALL SELECT document ->> '$.attachment.id', pf, vf
        FROM quarantine WHERE json_valid(document)) AS lease
    WHERE verifications.attachment = lease.id;
CREATE INDEX verifications_by_vf ON verifications (pf, vf, started_ms);
)sql";

constexpr char const* version_5 = R"sql(
CREATE TABLE firmware_tries (card TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE rdma_links (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
)sql";

// AUTOINCREMENT: a number that was reported is never used again, even when its row is gone.
constexpr char const* version_6 = R"sql(
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, pf TEXT NOT NULL, vf INTEGER,
    document TEXT NOT NULL) STRICT;
CREATE INDEX events_by_vf ON events (pf, vf, number);
)sql";

// An attachment's events are found by it. The event of its end, which holds the certificate, is
// kept apart from the VF's other events, so that a storm of drift pushes no certificate out.
constexpr char const* version_7 = R"sql(
ALTER TABLE events ADD COLUMN attachment TEXT;
ALTER TABLE events ADD COLUMN hand_over INTEGER NOT NULL DEFAULT 0;
UPDATE events SET attachment = document ->> '$.attachment',
    hand_over = coalesce(document ->> '$.kind' = 'returned', 0) WHERE json_valid(document);
CREATE INDEX events_by_attachment ON events (attachment, number);
DROP INDEX events_by_vf;
CREATE INDEX events_by_vf ON events (pf, vf, hand_over, number);
)sql";

// Refused requests (status 400 and above) are kept apart from the others, so neither kind can push
// the other out by sheer number, and a row may stand for many requests. Earlier entries could be as
// long as a request's header. Those fill a store, so they are cut before the columns are added.
constexpr char const* version_8 = R"sql(
DELETE FROM audit WHERE number <= (SELECT max(number) - 60000 FROM audit);
UPDATE audit SET who = substr(who, 1, 128), request_id = substr(request_id, 1, 64),
    action = substr(action, 1, 256), subject = substr(subject, 1, 256)
    WHERE length(action) > 256 OR length(subject) > 256 OR length(who) > 128;
ALTER TABLE audit ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN requests INTEGER NOT NULL DEFAULT 1;
UPDATE audit SET refused = 1 WHERE outcome >= '4' AND outcome < '6';
CREATE INDEX audit_by_refusal ON audit (refused, number);
)sql";

// The identities of PFs that were managed or had attachments before were not stored: the first
// observation that reads them stores them.
constexpr char const* version_9 = R"sql(
CREATE TABLE pf_identities (pci TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
)sql";

// Words of the API changed, which documents hold as JSON. A member's name is recognised by its
// quotes and its colon: inside of a JSON string quotes are escaped.
constexpr char const* version_10 = R"sql(
ALTER TABLE events RENAME COLUMN hand_over TO detached;
UPDATE attachments SET document = replace(document, '"vm_name":', '"vm":');
UPDATE quarantine SET document = replace(document, '"vm_name":', '"vm":');
UPDATE rdma_links SET document = replace(document, '"netdev":', '"ifname":');
UPDATE operations SET document = replace(replace(replace(replace(replace(document,
    '"vm_name":', '"vm":'), '"seen_at":', '"observed_at":'), '"lent":', '"attached":'),
    '"released":', '"detached":'), '"put_back":', '"restored":') WHERE document LIKE '%"seen_at":%';
UPDATE events SET document = replace(replace(replace(replace(replace(document,
    '"vm_name":', '"vm":'), '"seen_at":', '"observed_at":'), '"lent":', '"attached":'),
    '"released":', '"detached":'), '"put_back":', '"restored":');
UPDATE events SET document = json_set(document, '$.kind', CASE document ->> '$.kind'
    WHEN 'lent' THEN 'attached' WHEN 'lending_failed' THEN 'attach_failed' ELSE 'detached' END)
    WHERE json_valid(document) AND document ->> '$.kind' IN ('lent', 'lending_failed', 'returned');
UPDATE steps SET
    step = replace(replace(replace(replace(step, '"leg":', '"interface":'), '"vm_name":', '"vm":'),
        '"add_vlan_leg"', '"add_vlan_interface"'), '"remove_vlan_leg"', '"remove_vlan_interface"'),
    undo = replace(replace(replace(replace(undo, '"leg":', '"interface":'), '"vm_name":', '"vm":'),
        '"add_vlan_leg"', '"add_vlan_interface"'), '"remove_vlan_leg"', '"remove_vlan_interface"');
)sql";

// Networks were members of their PF's spec, with names of its own. Where two PFs have one name, it
// stays with the first; the others get their PF's address after it.
constexpr char const* version_11 = R"sql(
CREATE TABLE networks (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TEMP TABLE moved AS
    SELECT pci, revision, network, name, CASE nth WHEN 1 THEN name ELSE
        substr(name, 1, 19) || '-' || replace(replace(pci, ':', '-'), '.', '-') END AS new_name
    FROM (SELECT pfs.pci AS pci, pfs.document ->> '$.revision' AS revision, each.value AS network,
              each.value ->> '$.name' AS name,
              row_number() OVER (PARTITION BY each.value ->> '$.name' ORDER BY pfs.pci) AS nth
          FROM pfs, json_each(CASE WHEN json_valid(pfs.document) THEN pfs.document ELSE '{}' END,
                              '$.spec.networks') AS each);
INSERT INTO networks SELECT new_name, json_object('revision', revision, 'network',
    json_set(json_remove(network, '$.host_address'), '$.name', new_name, '$.pfs', json_array(
        json_object('pf', pci, 'host_address', network ->> '$.host_address')))) FROM moved;
UPDATE attachments SET document = json_set(document, '$.spec.network', moved.new_name) FROM moved
    WHERE CASE WHEN json_valid(document) THEN document ->> '$.vf.pf' = moved.pci AND
        document ->> '$.spec.network' = moved.name END;
UPDATE quarantine SET document = json_set(document, '$.attachment.spec.network', moved.new_name)
    FROM moved WHERE pf = moved.pci AND CASE WHEN json_valid(document) THEN
        document ->> '$.attachment.spec.network' = moved.name END;
UPDATE pfs SET document = json_remove(document, '$.spec.networks') WHERE json_valid(document);
DROP TABLE moved;
)sql";

constexpr char const* version_12 = R"sql(
CREATE TABLE pools (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE reservations (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE handed_out (id INTEGER PRIMARY KEY CHECK (id = 0), document TEXT NOT NULL) STRICT;
)sql";

// Tokens made before keep what they had: no scopes are all that the role may, no time is for ever.
constexpr char const* version_13 = R"sql(
ALTER TABLE tokens ADD COLUMN scopes TEXT;
ALTER TABLE tokens ADD COLUMN rotated_ms INTEGER;
ALTER TABLE tokens ADD COLUMN former_sha256 TEXT;
ALTER TABLE tokens ADD COLUMN former_until_ms INTEGER;
ALTER TABLE tokens ADD COLUMN used_ms INTEGER;
ALTER TABLE tokens ADD COLUMN used_from TEXT;
)sql";

// A client resumes after an event by its number, unless one above it was deleted: the highest such
// number is kept. Before, not everything that happened became an event, so nothing resumes there.
// Events that are in no VF's history have a table without any index, which costs a commit one page.
constexpr char const* version_14 = R"sql(
CREATE TABLE passing_events (number INTEGER PRIMARY KEY, document TEXT NOT NULL) STRICT;
INSERT INTO host SELECT 'events_pruned',
    CAST(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0) AS TEXT);
CREATE TRIGGER events_pruned AFTER DELETE ON events BEGIN
    UPDATE host SET value = CAST(old.number AS TEXT)
        WHERE name = 'events_pruned' AND CAST(value AS INTEGER) < old.number;
END;
CREATE TRIGGER passing_events_pruned AFTER DELETE ON passing_events BEGIN
    UPDATE host SET value = CAST(old.number AS TEXT)
        WHERE name = 'events_pruned' AND CAST(value AS INTEGER) < old.number;
END;
)sql";

// What lists of operations are filtered by. The index has the list's order and the filters, so that
// a filter which few operations pass does not read the others' documents.
// Where a request came from and what it began is not known of earlier ones, except that a client
// that failed to authenticate was named by its address.
constexpr char const* version_15 = R"sql(
ALTER TABLE operations ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN subject TEXT NOT NULL DEFAULT '';
UPDATE operations SET state = coalesce(document ->> '$.state', ''),
    kind = coalesce(document ->> '$.kind', ''), subject = coalesce(document ->> '$.subject', '')
    WHERE json_valid(document);
DROP INDEX operations_by_age;
CREATE INDEX operations_by_age ON operations (created_ms, number, state, kind, subject);
CREATE INDEX operations_by_subject ON operations (subject, created_ms);
ALTER TABLE audit ADD COLUMN peer TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN plan_digest TEXT;
ALTER TABLE audit ADD COLUMN operation TEXT;
UPDATE audit SET peer = who WHERE who LIKE 'address:%' OR who LIKE 'uid:%';
)sql";

// What a tenant has is found by its VM. Operations made before have none, and no tenant sees them.
// A run counts for its VM's tenant whether it has a verdict or not.
constexpr char const* version_16 = R"sql(
CREATE TABLE tenants (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
ALTER TABLE tokens ADD COLUMN tenant TEXT;
ALTER TABLE operations ADD COLUMN vm TEXT NOT NULL DEFAULT '';
DROP INDEX operations_by_age;
CREATE INDEX operations_by_age ON operations (created_ms, number, state, kind, subject, vm);
CREATE TABLE run_times (
    run TEXT PRIMARY KEY, vm TEXT NOT NULL, began_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL) STRICT;
CREATE INDEX run_times_by_vm ON run_times (vm, ended_ms);
)sql";

// No table changes, but what a vfmgrd may do with this host: one that changes VFs without the
// broker, which remembers who had each VF last, must not open this store.
constexpr char const* version_17 = "";

// What guests on TCP show of themselves.
constexpr char const* version_18 = R"sql(
CREATE TABLE guest_keys (attachment TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
)sql";

// A fleet tells by the id whether this is the store that it knew.
constexpr char const* version_19 = R"sql(
CREATE TABLE fleet (id INTEGER PRIMARY KEY CHECK (id = 0), document TEXT NOT NULL) STRICT;
INSERT INTO host VALUES ('store', lower(hex(randomblob(16))));
)sql";

constexpr std::array migrations{version_1,  version_2,  version_3,  version_4,  version_5,
                                version_6,  version_7,  version_8,  version_9,  version_10,
                                version_11, version_12, version_13, version_14, version_15,
                                version_16, version_17, version_18, version_19};
constexpr int newest = static_cast<int>(migrations.size());
constexpr int application_id = 0x76666d67;  // "vfmg"

Error not_ours(Store::Impl const& store, std::string why, std::string remedy) {
    return {Problem::unavailable, fmt::format("the store {} {}", store.path, why),
            std::move(remedy)};
}

}  // namespace

Result<void> check_form(Store::Impl& store) {
    return store.guarded(Access::read, [&](SQLite::Database& db) -> Result<void> {
        int const version = db.execAndGet("PRAGMA user_version").getInt();
        int const application = db.execAndGet("PRAGMA application_id").getInt();
        int const tables = db.execAndGet("SELECT count(*) FROM sqlite_schema").getInt();
        bool const fresh = version == 0 && application == 0 && tables == 0;
        if (!fresh && application != application_id)
            return fail(not_ours(store, "is a database of another program",
                                 "name another file as the store, or move this one away"));
        if (version > newest)
            return fail(not_ours(
                store, fmt::format("has schema {}; this vfmgrd knows up to {}", version, newest),
                "install the vfmgrd that wrote it, or a newer one"));
        return {};
    });
}

Result<void> migrate(Store::Impl& store) {
    return store.in_transaction(Room::reserve, [&](SQLite::Database& db) -> Result<void> {
        int version = db.execAndGet("PRAGMA user_version").getInt();
        for (; version < newest; ++version)
            db.exec(migrations.at(static_cast<std::size_t>(version)));
        // Written even when nothing changed: the daemon must not start with a store that can't be
        // written.
        db.exec(fmt::format("PRAGMA application_id = {}", application_id));
        db.exec(fmt::format("PRAGMA user_version = {}", newest));
        return {};
    });
}

}  // namespace vfmgr
