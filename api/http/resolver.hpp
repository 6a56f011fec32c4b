// SPDX-License-Identifier: Apache-2.0
// Finds the addresses of hosts without blocking the io thread. Internal to api/http. Lives on the
// io thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/http/connecting.hpp"
#include "api/http/mailbox.hpp"

namespace vfmgr::http {

// getaddrinfo() takes no deadline, so each name has a thread of its own, at most so many at once. A
// thread that hangs outlives the resolver, and nobody waits for it.
class Resolver {
  public:
    using Found = std::function<void(Resolved const&)>;
    using Lookup = std::function<Resolved(std::string const& host, std::string const& port)>;
    explicit Resolver(std::shared_ptr<Mailbox> mailbox, Lookup lookup = resolve)
        : mailbox_(std::move(mailbox)), lookup_(std::move(lookup)) {}
    Resolver(Resolver const&) = delete;
    Resolver& operator=(Resolver const&) = delete;

    // Calls `found` on the io thread: before this returns, if the host is an address. Who waits for
    // the same name at the same time shares the answer.
    void find(TlsTarget const& target, Found found);

  private:
    using Name = std::pair<std::string, std::string>;  // host, port
    static constexpr std::size_t threads_max = 32;
    void begin(Name const& name);
    void take(Name const& name, Resolved const& resolved);

    std::shared_ptr<Mailbox> mailbox_;
    Lookup lookup_;
    std::map<Name, std::vector<Found>> waiting_;
    std::deque<Name> queue_;  // names without a thread
    std::size_t threads_ = 0;
};

}  // namespace vfmgr::http
