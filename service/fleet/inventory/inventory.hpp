// SPDX-License-Identifier: Apache-2.0
// What all hosts of the fleet were observed to have, in memory only: a replica that starts reads it
// from the hosts again. One writer changes it and publishes; any thread takes a snapshot, which
// never changes and costs one pointer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/time.hpp"
#include "service/fleet/inventory/documents.hpp"

namespace vfmgr::fleet {

// unreachable: the host doesn't answer, and what is here is what it had. catching_up: it answers
// again, and what it did meanwhile is being read.
enum class StaleWhy { unreachable, catching_up };
struct Stale {
    Time since{};
    StaleWhy why = StaleWhy::unreachable;
    bool operator==(Stale const&) const = default;
};

// A host as the registry has it.
struct HostEntry {
    std::string name;          // [a-z0-9.-], at most 64: no '/', nothing to escape in JSON
    std::uint32_t number = 0;  // unique in the fleet, never used again
    std::string rack{};        // empty: none was given
    std::map<std::string, std::string> labels{};
    bool operator==(HostEntry const&) const = default;
};

struct HostPart {
    HostEntry host;
    HostDocuments documents{};
    std::optional<Stale> stale{};  // absent: as far as is known it is as the host has it
    Time known_since{};            // when this replica first learned of the host
};

struct InventoryView {
    std::vector<std::shared_ptr<HostPart const>> hosts;  // by name

    // Null: there is no such host.
    [[nodiscard]] HostPart const* find(std::string_view name) const;
};

class Inventory {
  public:
    // --- the writer's; nothing of it is seen before publish() ---
    // Adds a host, or changes what the registry has of it.
    void put_host(HostEntry host, Time now);
    void remove_host(std::string_view name);
    // Null: there is no such host. Valid until the next change.
    [[nodiscard]] HostPart const* find(std::string_view name) const;
    // Does nothing if there is no such host.
    void put_documents(std::string_view name, HostDocuments documents);
    void put_stale(std::string_view name, std::optional<Stale> stale);
    // Costs a pointer for each host, if anything changed: so it is called for several changes.
    void publish();

    // --- any thread's ---
    [[nodiscard]] std::shared_ptr<InventoryView const> snapshot() const;

  private:
    [[nodiscard]] HostPart* changed(std::string_view name);

    std::map<std::string, std::shared_ptr<HostPart const>, std::less<>> hosts_;
    std::map<std::string, std::shared_ptr<HostPart>, std::less<>> unpublished_;
    bool changed_ = false;
    mutable std::mutex mutex_;
    std::shared_ptr<InventoryView const> view_ = std::make_shared<InventoryView>();
};

}  // namespace vfmgr::fleet
