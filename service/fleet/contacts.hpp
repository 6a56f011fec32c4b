// SPDX-License-Identifier: Apache-2.0
// What follows from what hosts say of themselves: a host that was joining is active, one that can't
// be what it was is quarantined, and how far one has got is marked in etcd. Every replica does it
// for the hosts that it reaches. One thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "service/fleet/contact.hpp"
#include "service/fleet/hosts/followers.hpp"
#include "service/fleet/registry.hpp"
#include "service/fleet/writer.hpp"

namespace vfmgr::fleet {

class Contacts {
  public:
    struct Seams {
        Registry& registry;
        Writer& writer;
        Clock& clock;
        std::string fleet;
        // How far the hosts have got. Any thread.
        std::function<std::shared_ptr<Reaches const>()> reaches;
        // A host was quarantined, with the reason. On its thread.
        std::function<void(std::string const& host, std::string const& reason)> quarantined;
    };
    explicit Contacts(Seams seams);
    ~Contacts();  // stop()
    Contacts(Contacts const&) = delete;
    Contacts& operator=(Contacts const&) = delete;

    void start();
    void stop();
    // A host has said who it is; `seen`: the latest of its events that came before. Any thread.
    void said(std::string const& host, Contact const& contact, KnownEvent const& seen);
    // What it reports contradicts what it reported before. Any thread.
    void contradicts(std::string const& host, std::string const& why);
    // What the thread does when a host has said something. Tests call it without start().
    void turn();

  private:
    struct Said {
        std::optional<Contact> contact{};
        KnownEvent seen{};  // when it said so
        // The host's mark then. A later one may be of events that came after its word, while etcd
        // did not answer: it is no evidence against the host.
        std::optional<MarkRecord> marked{};
        std::string contradiction{};
        bool judged = false;
        Time marked_at{};
    };

    // What is to be done about a host: judged, or marked as far as it has got.
    struct Due {
        Said said;
        KnownEvent last;
    };

    void wait_for_news();
    [[nodiscard]] std::map<std::string, Due> due();
    [[nodiscard]] Result<void> judge(std::string const& host, Said const& said);
    [[nodiscard]] Result<void> mark(std::string const& host, Due const& due);

    Seams const seams_;
    std::mutex mutex_;  // guards the next three
    std::condition_variable wake_;
    std::map<std::string, Said> said_;
    bool news_ = false;
    std::unique_ptr<OwnThread> thread_;
};

}  // namespace vfmgr::fleet
