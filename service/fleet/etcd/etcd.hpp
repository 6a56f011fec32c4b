// SPDX-License-Identifier: Apache-2.0
// The seam to etcd, in which all of the fleet's state is. Implementations: GrpcEtcd and the tests'
// FakeEtcd. The caller owns it; any thread. Calls block until there is an answer or their deadline
// passes.
//
// Keys are below the fleet's own prefix ("hosts/a", not "/vfmgr/hosts/a"). Errors of each call:
//   unavailable     it was surely not carried out
//   timed_out       whether it was carried out is not known
//   forbidden       etcd's user may not do it; not carried out
//   limit_exceeded  etcd has no space, or the request is too large. etcd 3.4 and 3.5 also answer
//                   "no space" for the transaction that took the last of it, which is carried out
//                   (quotaApplierV3.Txn of their etcdserver/apply.go): see settle.hpp
//   not_found       the revision is compacted, or there is no such lease; not carried out
// Their causes are {what was called and where, gRPC's code, text}.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::fleet {

// Counts etcd's transactions. 0 is none: an absent key has it.
using Revision = std::int64_t;
// 0 is none.
using LeaseId = std::int64_t;

struct KeyValue {
    std::string key;
    std::string value;
    Revision create_revision = 0;  // of the transaction that created it
    Revision mod_revision = 0;     // of the last one that wrote it
    LeaseId lease = 0;             // its end erases the key
    bool operator==(KeyValue const&) const = default;
};

enum class Match { key, prefix };        // this key; all keys that begin with it
enum class Content { whole, no_value };  // no_value: values are left empty

struct Query {
    std::string key;
    Match match = Match::key;
    // Only keys that are not below this one, in the order of bytes.
    std::string from{};
    std::size_t limit = 0;  // 0: none
    Revision revision = 0;  // as it was at this revision; 0: now
    Content content = Content::whole;
};

struct Found {
    std::vector<KeyValue> entries;  // in the order of keys
    Revision revision = 0;          // etcd's own when it answered
    bool more = false;              // the limit left some out
};

// A condition of a transaction, on one key. An absent key has 0 for each number, and fails any
// comparison of its value.
struct Compare {
    enum class On { create_revision, mod_revision, lease, value };
    enum class Is { equal, not_equal };
    std::string key;
    On on = On::mod_revision;
    Is is = Is::equal;
    std::int64_t number = 0;
    std::string value{};
    bool operator==(Compare const&) const = default;
};
[[nodiscard]] Compare absent(std::string key);
[[nodiscard]] Compare present(std::string key);
// Nobody has written the key since this revision.
[[nodiscard]] Compare unchanged(std::string key, Revision mod_revision);
// It is the same key, not one that was erased and created again. The election's fence.
[[nodiscard]] Compare created_at(std::string key, Revision create_revision);

struct Put {
    std::string key;
    std::string value;
    LeaseId lease = 0;
    bool operator==(Put const&) const = default;
};
struct Erase {
    std::string key;
    Match match = Match::key;
    bool operator==(Erase const&) const = default;
};
using Write = std::variant<Put, Erase>;

// etcd's limits: --max-txn-ops, which counts each of the three lists for itself, and
// --max-request-bytes. A transaction beyond them is refused before it is sent.
inline constexpr std::size_t transaction_operations_max = 128;
inline constexpr std::size_t request_bytes_max = 1'572'864;

// If all comparisons hold, all writes are done; otherwise these keys are read. Atomic either way.
struct Transaction {
    std::vector<Compare> compares;
    std::vector<Write> writes;             // no key twice
    std::vector<std::string> otherwise{};  // keys
};
// Fails with limit_exceeded, or with internal if it writes a key twice, which etcd refuses.
[[nodiscard]] Result<void> check(Transaction const& transaction);

struct Outcome {
    bool succeeded = false;
    Revision revision = 0;          // of its writes, or of what was read
    std::vector<KeyValue> found{};  // of `otherwise`: the keys that are there
};

struct KeyChange {
    std::string key;
    std::optional<KeyValue> now;  // absent: it was erased
    Revision revision = 0;        // of the change
    bool operator==(KeyChange const&) const = default;
};

// What came over a watch. Without changes it only shows that etcd is there and has a leader: in
// 3.4.23 and 3.5.16 a later answer may have changes of an earlier revision (etcd-io/etcd#15220).
struct WatchBatch {
    std::vector<KeyChange> changes;  // whole transactions
    Revision revision = 0;           // of the last change; without changes, etcd's own
};

// Owned by one thread, which pulls. Cancelled, closed, compacted, stalled, without a leader: it has
// ended, and the reader lists again.
class Watch {
  public:
    virtual ~Watch() = default;
    // nullopt: nothing came until the deadline. An Error: it has ended, and stays so.
    [[nodiscard]] virtual Result<std::optional<WatchBatch>> next(Deadline deadline) = 0;
    // Ends it and a next() that waits. Any thread, while the object lives.
    virtual void end() = 0;
};

struct WatchFrom {
    std::string key;
    Match match = Match::prefix;
    Revision revision = 0;  // the first whose changes it gets
};

struct LeaseGrant {
    LeaseId id = 0;
    std::chrono::seconds ttl{};  // etcd may make it longer than asked
};

// What doctor shows of one member of etcd.
struct MemberStatus {
    std::uint64_t id = 0;  // 0: unknown
    std::string name;      // empty: unknown
    std::string url;
    std::optional<Error> problem{};  // absent: it answered, and what follows is known
    std::string version{};
    std::uint64_t leader = 0;  // the id of the leader; 0: it knows none
    std::uint64_t raft_term = 0;
    std::uint64_t raft_index = 0;
    std::int64_t bytes = 0;             // of its database, on disk
    std::int64_t bytes_in_use = 0;      // what defragmentation would leave
    std::int64_t bytes_max = 0;         // its quota; 0: etcd does not say, before 3.6
    std::vector<std::string> alarms{};  // "NOSPACE", "CORRUPT"
};

class Etcd {
  public:
    virtual ~Etcd() = default;
    // Linearizable: no answer is older than what any client has been answered before.
    [[nodiscard]] virtual Result<Found> range(Query const& query, Deadline deadline) = 0;
    // Sent once; settle() sends it again where that is safe.
    [[nodiscard]] virtual Result<Outcome> commit(Transaction const& transaction,
                                                 Deadline deadline) = 0;
    // The deadline is that of its beginning.
    [[nodiscard]] virtual Result<std::unique_ptr<Watch>> watch(WatchFrom const& from,
                                                               Deadline deadline) = 0;
    [[nodiscard]] virtual Result<LeaseGrant> grant(std::chrono::seconds ttl, Deadline deadline) = 0;
    // Returns the whole time for which etcd keeps it from now on. not_found: it has ended.
    [[nodiscard]] virtual Result<std::chrono::seconds> keep_alive(LeaseId lease,
                                                                  Deadline deadline) = 0;
    // A lease that has ended is no failure.
    [[nodiscard]] virtual Result<void> revoke(LeaseId lease, Deadline deadline) = 0;
    // Of every member that is configured or that etcd lists, with those that don't answer.
    [[nodiscard]] virtual std::vector<MemberStatus> members(Deadline deadline) = 0;
};

}  // namespace vfmgr::fleet
