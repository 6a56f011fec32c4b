// SPDX-License-Identifier: Apache-2.0
// Follows all hosts of the fleet, and keeps the inventory as they are. One thread of its own, the
// only writer of the inventory; what hosts send comes to it as messages.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/http/client_pool.hpp"
#include "api/http/sse.hpp"
#include "service/fleet/contact.hpp"
#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

// What is known of the connection to a host.
struct Reach {
    std::optional<Time> unreachable_since{};  // absent: it answers, or was not tried yet
    std::string unreachable_why{};
    std::string version{};             // of its vfmgrd; empty: not known yet
    std::optional<Contact> contact{};  // what it said of itself last
    KnownEvent last_event{};           // the latest that came
};
using Reaches = std::map<std::string, Reach, std::less<>>;  // by host

struct FollowersSeams {
    http::ClientPool& pool;
    Inventory& inventory;
    Clock& clock;
    // Called on the followers' thread: an event of a host, or that it could not say which there
    // were; a host has said who it is.
    std::function<void(std::uint32_t host, http::SentEvent const& event)> event;
    std::function<void(std::string const& host, Contact const& contact, KnownEvent const& seen)>
        contact;
    // What it reports contradicts what it reported before: a sentence.
    std::function<void(std::string const& host, std::string const& why)> contradicts;
    // The inventory and what is known of connections has news.
    std::function<void()> published{};
};

[[nodiscard]] HostEntry entry_of(std::string const& name, HostRecord const& record);

class Followers {
  public:
    explicit Followers(FollowersSeams seams);
    ~Followers();  // stop()
    Followers(Followers const&) = delete;
    Followers& operator=(Followers const&) = delete;

    void start();
    void stop();
    // Follows these hosts, and no others; those that are new from their marks on. Any thread.
    void follow(Table<HostRecord> hosts, Table<MarkRecord> marks);
    // Any thread.
    [[nodiscard]] std::shared_ptr<Reaches const> reaches() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vfmgr::fleet
