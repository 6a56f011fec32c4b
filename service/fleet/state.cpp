// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {
namespace {

// A state under way. A table is copied when the first change of a batch reaches it, and shared with
// the state before if none does.
class Changing {
  public:
    explicit Changing(State& state) : state_(state) {}

    void apply(KeyChange const& change) {
        state_.unreadable.erase(change.key);
        if (change.key == keys::format) return apply_format(change);
        if (change.key == keys::fleet) return one(state_.fleet, change);
        if (change.key == keys::leader) return one(state_.leader, change);
        if (change.key == keys::identities) return one(state_.identities, change);
        static_cast<void>(row(keys::join_tokens, state_.join_tokens, change) ||
                          row(keys::hosts, state_.hosts, change) ||
                          row(keys::host_numbers, state_.host_numbers, change) ||
                          row(keys::marks, state_.marks, change) ||
                          row(keys::blocks, state_.blocks, change) ||
                          row(keys::claims, state_.claims, change) ||
                          row(keys::reservations, state_.reservations, change) ||
                          row(keys::replicas, state_.replicas, change));
    }

  private:
    template <class T>
    std::optional<Stored<T>> read(KeyChange const& change) {
        auto record = read_record<T>(change.now->value);
        if (record)
            return Stored<T>{std::move(*record), change.now->value, change.now->create_revision,
                             change.now->mod_revision};
        state_.unreadable[change.key] = record.error().detail;
        return std::nullopt;
    }

    void apply_format(KeyChange const& change) {
        state_.format.reset();
        if (!change.now) return;
        if (auto const stored = read<FormatRecord>(change)) state_.format = stored->record.format;
    }

    template <class T>
    void one(std::optional<Stored<T>>& place, KeyChange const& change) {
        place.reset();
        if (change.now) place = read<T>(change);
    }

    // True: the key is of this table.
    template <class T>
    bool row(std::string_view prefix, Table<T>& table, KeyChange const& change) {
        if (!change.key.starts_with(prefix)) return false;
        auto& records = own(table);
        std::string const name = change.key.substr(prefix.size());
        auto stored = change.now ? read<T>(change) : std::nullopt;
        if (stored)
            records.insert_or_assign(name, std::move(*stored));
        else
            records.erase(name);
        return true;
    }

    template <class T>
    Records<T>& own(Table<T>& table) {
        auto const known = owned_.find(table.get());
        if (known != owned_.end()) return *static_cast<Records<T>*>(known->second);
        auto copy = std::make_shared<Records<T>>(*table);
        auto& records = *copy;
        table = std::move(copy);
        owned_.emplace(table.get(), &records);
        return records;
    }

    State& state_;
    std::map<void const*, void*> owned_;  // tables that were copied here
};

}  // namespace

State::State()
    : join_tokens(std::make_shared<Records<JoinTokenRecord> const>()),
      hosts(std::make_shared<Records<HostRecord> const>()),
      host_numbers(std::make_shared<Records<HostNumberRecord> const>()),
      marks(std::make_shared<Records<MarkRecord> const>()),
      blocks(std::make_shared<Records<BlockRecord> const>()),
      claims(std::make_shared<Records<ClaimRecord> const>()),
      reservations(std::make_shared<Records<ReservationRecord> const>()),
      replicas(std::make_shared<Records<ReplicaRecord> const>()) {}

State with_changes(State state, std::vector<KeyChange> const& changes) {
    Changing changing(state);
    for (auto const& change : changes) changing.apply(change);
    return state;
}

}  // namespace vfmgr::fleet
