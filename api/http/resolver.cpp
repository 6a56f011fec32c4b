// SPDX-License-Identifier: Apache-2.0
#include "api/http/resolver.hpp"

#include <netdb.h>

#include <system_error>
#include <thread>

namespace vfmgr::http {

void Resolver::find(TlsTarget const& target, Found found) {
    if (auto const address = numeric_address(target)) return found(Resolved{0, {*address}});
    Name const name{target.host, std::to_string(target.port)};
    auto& waiting = waiting_[name];
    waiting.push_back(std::move(found));
    if (waiting.size() > 1) return;
    if (threads_ < threads_max) return begin(name);
    queue_.push_back(name);
}

void Resolver::begin(Name const& name) {
    ++threads_;
    try {
        std::thread([this, name, lookup = lookup_, mailbox = mailbox_] {
            auto resolved = lookup(name.first, name.second);
            // Dropped if the io thread has ended, and `this` with it.
            mailbox->post([this, name, resolved = std::move(resolved)] { take(name, resolved); });
        }).detach();
    } catch (std::system_error const&) {
        mailbox_->post([this, name] { take(name, Resolved{EAI_AGAIN, {}}); });
    }
}

void Resolver::take(Name const& name, Resolved const& resolved) {
    --threads_;
    auto const waited = waiting_.extract(name);
    if (!queue_.empty()) {
        auto const next = std::move(queue_.front());
        queue_.pop_front();
        begin(next);
    }
    if (waited.empty()) return;
    for (auto const& found : waited.mapped()) found(resolved);
}

}  // namespace vfmgr::http
