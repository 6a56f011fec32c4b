// SPDX-License-Identifier: Apache-2.0
// The state that survives a crash: desired state, attachments, operations with their journal,
// tokens, verifications, audit; one SQLite file, mode 0600. Called by the control thread only.
// Every write is durable (synchronous=FULL) when its call returns. An Error is
// Problem::unavailable: the daemon is then read-only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/types/daemon.hpp"
#include "api/types/event.hpp"
#include "api/types/operation.hpp"
#include "api/types/token.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/step.hpp"
#include "vfmgr/store/row_range.hpp"

namespace vfmgr {

// One step of an operation, as the journal holds it. `undo` restores what was observed before.
struct JournalRecord {
    std::uint32_t seq = 0;
    Step step;
    std::vector<Step> undo;
    StepState state = StepState::intended;
    bool operator==(JournalRecord const&) const = default;
};

struct UnfinishedOperation {
    Operation operation;
    std::vector<JournalRecord> records;  // by seq, ascending
};

// What an Idempotency-Key was used for: the same request again gets that operation as its answer.
struct IdempotencyRecord {
    std::string key;
    std::string request_hash;
    std::string operation;
    Time created_at{};
    bool operator==(IdempotencyRecord const&) const = default;
};

// Changes that become durable together, or not at all. Collects values; Store::commit writes them.
struct Batch {
    std::vector<std::pair<PciAddress, DesiredPf>> save_pfs;
    std::vector<PciAddress> erase_pfs;
    std::vector<DesiredNetwork> save_networks;
    std::vector<std::string> erase_networks;  // names
    std::vector<DesiredPool> save_pools;
    std::vector<std::string> erase_pools;  // names
    std::vector<DesiredTenant> save_tenants;
    std::vector<std::string> erase_tenants;  // names
    std::vector<Reservation> save_reservations;
    std::vector<std::string> erase_reservations;  // names
    std::optional<DesiredIdentities> save_handed_out;
    std::vector<Attachment> save_attachments;
    std::vector<std::string> erase_attachments;  // with their guests' keys
    std::vector<GuestKeys> save_guest_keys;
    std::vector<Quarantine> save_quarantines;
    std::vector<VfId> erase_quarantines;
    std::vector<std::pair<PciAddress, FirmwareTries>> save_firmware_tries;
    std::vector<PciAddress> erase_firmware_tries;
    std::vector<DesiredRdmaLink> save_rdma_links;
    std::vector<std::string> erase_rdma_links;  // names
    std::vector<std::pair<PciAddress, PfIdentity>> save_identities;
    std::vector<PciAddress> erase_identities;
    std::optional<FleetMembership> save_fleet;
    bool erase_fleet = false;
    bool confirm_restored = false;
    std::vector<Operation> save_operations;
    std::vector<IdempotencyRecord> save_idempotency;
    // Go into the history of their VF and of their attachment.
    std::vector<std::pair<VfId, Verification>> save_verifications;
    std::vector<Event> save_events;  // each with a number of its own, above last_event()
    struct Record {
        std::string operation;
        JournalRecord record;  // inserted, or replaced by (operation, seq)
        bool operator==(Record const&) const = default;
    };
    std::vector<Record> save_records;
    struct RecordState {
        std::string operation;
        std::uint32_t seq = 0;
        StepState state = StepState::intended;
        bool operator==(RecordState const&) const = default;
    };
    std::vector<RecordState> save_record_states;  // for records that were saved before
    std::vector<std::string>
        erase_records_of;  // operation ids: the journal of a finished operation
    bool operator==(Batch const&) const = default;
};
// True when the batch may fill the part of the store that is reserved. Pure.
[[nodiscard]] bool uses_reserve(Batch const& batch);

// A part of all events, in the order of their numbers.
struct EventPage {
    std::vector<Event> events;
    // The highest number that was deleted, or here can't be read: up to it, events are missing.
    std::uint64_t pruned = 0;
    std::uint64_t last = 0;  // the highest number that was given to an event
};

// Absent members, and empty ones, match every row.
struct OperationFilter {
    std::optional<OperationState> state{};
    std::optional<OperationKind> kind{};
    std::string subject{};
    std::optional<std::vector<std::string>> vms{};  // by UUID
};
struct AuditFilter {
    std::string who{};
    std::string outcome{};
};

struct StoreLimits {
    // Near this limit the oldest history is deleted; at it, "the store is full", read-only.
    std::uint64_t bytes_max = std::uint64_t{1} << 30;
    // Part of bytes_max, reserved for operations under way and for detaching; a quarter of it at
    // most.
    std::uint64_t reserve_bytes = std::uint64_t{16} << 20;
};

class Store {
  public:
    // Makes or migrates the file. Fails loudly: without a journal there is no service.
    [[nodiscard]] static Result<Store> open(std::string const& path);
    [[nodiscard]] static Result<Store> open(std::string const& path, StoreLimits const& limits);
    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;
    ~Store();

    [[nodiscard]] Result<DesiredState> load();
    [[nodiscard]] Result<void> commit(Batch const& batch);

    [[nodiscard]] Result<std::vector<UnfinishedOperation>> unfinished();
    [[nodiscard]] Result<std::optional<Operation>> operation(std::string const& id);
    // All Rows are newest first.
    [[nodiscard]] Result<Rows<Operation>> operations(OperationFilter const& filter,
                                                     RowRange const& range);
    // 100 are kept for each attachment.
    [[nodiscard]] Result<Rows<Verification>> verifications(std::string const& attachment,
                                                           RowRange const& range);
    // Returns the runs of every attachment that the VF had, or only those of the one that is named;
    // 200 are kept for each VF.
    [[nodiscard]] Result<Rows<Verification>> verifications(VfId const& vf, RowRange const& range,
                                                           std::string const& attachment = {});

    // Returns events of the VF, and those of all VFs of its PF; or those that name this attachment.
    // 1000 are kept for each VF, and 1000 of the PF itself, however old; and 1000 ends of
    // attachments on each VF apart from those, since they hold the certificates. Events without a
    // PF, and those that come in numbers (operations, a PF's link), are in no VF's history: 20,000
    // of them are kept.
    [[nodiscard]] Result<Rows<Event>> events(VfId const& vf, RowRange const& range,
                                             std::string const& attachment = {});
    // Whether an event or a run of it is kept: it exists, or did.
    [[nodiscard]] Result<bool> knows(VfId const& vf);
    // Returns those of the attachment, newest first, even when it is gone.
    [[nodiscard]] Result<std::vector<Event>> events(std::string const& attachment);
    // 0: there are no events yet.
    [[nodiscard]] Result<std::uint64_t> last_event();
    // Returns at most `max` events, those that follow the number `after`.
    [[nodiscard]] Result<EventPage> events_after(std::uint64_t after, std::size_t max);
    // The highest that was ever saved, including erased ones; 0: none, or saved by an older
    // version.
    [[nodiscard]] Result<std::uint64_t> last_revision();

    // Leaves its last use alone: save_token_uses() writes that. `events` become durable with the
    // change.
    [[nodiscard]] Result<void> save_token(Token const& token,
                                          std::vector<Event> const& events = {});
    // By the tokens' ids; those that are gone are left out.
    [[nodiscard]] Result<void> save_token_uses(std::map<std::string, TokenUse> const& uses);
    [[nodiscard]] Result<std::vector<Token>> tokens();
    // false: there was no such token, and `events` were not saved.
    [[nodiscard]] Result<bool> erase_token(std::string const& id,
                                           std::vector<Event> const& events = {});

    // Cuts texts that are too long. Keeps 30,000 entries of refused requests, and as many of the
    // others: under 64 MiB.
    [[nodiscard]] Result<void> append_audits(std::vector<AuditEntry> const& entries);
    [[nodiscard]] Result<Rows<AuditEntry>> audit(AuditFilter const& filter, RowRange const& range);

    struct RunTime {
        std::string run;
        std::string vm;  // its UUID
        Time began{};
        Time ended{};
    };
    // Kept for 24 hours.
    [[nodiscard]] Result<void> save_run_time(RunTime const& time);
    // Returns how long the ended runs of these VMs took after `since`.
    [[nodiscard]] Result<std::chrono::milliseconds> run_time(std::vector<std::string> const& vms,
                                                             Time since);

    // Finds keys used within 24 hours of `now`.
    [[nodiscard]] Result<std::optional<IdempotencyRecord>> idempotency(std::string const& key,
                                                                       Time now);
    // Deletes finished operations, audit, idempotency records and verifications of former
    // attachments, older than 30 days.
    [[nodiscard]] Result<void> prune(Time now);
    // 32 hex digits, made once for this host and kept: chosen MACs derive from it.
    [[nodiscard]] Result<std::string> host_seed();
    // 32 hex digits, which no other store has: made with the file, and again when it is restored.
    [[nodiscard]] Result<std::string> id();

    // Why the store takes no changes: the last write that failed, until one shows that there is
    // room again. Absent: it takes them, as far as is known.
    [[nodiscard]] std::optional<Error> const& refusal() const;
    // Writes what is there already, to find out whether a store that refused can be written again.
    void try_again();

    struct Impl;  // store/database.hpp

  private:
    explicit Store(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace vfmgr
