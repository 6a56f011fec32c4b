// SPDX-License-Identifier: Apache-2.0
// How one host is followed: by its stream of events, and by reading again what an event is about.
// Knows no network: its owner sends what it asks for, and calls it with what came. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/http.hpp"
#include "api/http/sse.hpp"
#include "service/fleet/contact.hpp"
#include "service/fleet/etcd/timing.hpp"
#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/inventory/refresh.hpp"

namespace vfmgr::fleet {

// What it asks its owner for. Answers may come while it asks, or later.
struct FollowingCalls {
    // Opens the stream of events, those after that number; absent: those from now on. The one
    // before has ended.
    std::function<void(std::optional<std::uint64_t> after)> open;
    std::function<void()> close;
    // Sends a GET; answered() gets the answer with the same number.
    std::function<void(std::uint64_t number, http::Request request)> get;
    // An event came, in the host's order, or the host could not say which ones did (resync).
    std::function<void(http::SentEvent const& event)> event;
    // The host said who it is and how far it got.
    std::function<void(Contact const& contact)> contact;
    // The event of that number is not the one that it sent before: its store was replaced by an
    // older one, and has gone on since.
    std::function<void(std::uint64_t number)> other_history;
};

class Following {
  public:
    // `known`: the latest event that the fleet knows of the host.
    Following(FollowingCalls calls, DocumentLimits const& limits, KnownEvent known);

    // Begins, or tries again, if that is due; asks for what is to be read. Returns when it is to be
    // called next.
    [[nodiscard]] Deadline turn(Deadline now, Time at);
    // The stream is open; came() has its parts.
    void begun(Time at);
    void came(std::string_view part, Deadline now, Time at);
    void ended(Error const& why, Deadline now, Time at);
    void answered(std::uint64_t number, Result<http::Response> const& answer, Deadline now,
                  Time at);

    [[nodiscard]] HostDocuments const& documents() const { return documents_; }
    // Why its documents may be old; absent: they are what the host has.
    [[nodiscard]] std::optional<Stale> stale() const;
    // Since when it can't be reached, and why; absent: it can.
    [[nodiscard]] std::optional<Time> unreachable_since() const { return unreachable_since_; }
    [[nodiscard]] std::string const& unreachable_why() const { return unreachable_why_; }
    [[nodiscard]] std::string const& version() const { return version_; }
    // Why it can't read what it wants, though the host answers; empty: it can.
    [[nodiscard]] std::string const& trouble() const { return trouble_; }
    // The latest event that came, or was known before.
    [[nodiscard]] KnownEvent const& last_event() const { return last_; }

  private:
    enum class Phase { waiting, opening, open };
    struct Introduction {};  // who it is, and how far it has got: GET /v1/fleet
    struct About {};         // its version: GET /v1
    using What = std::variant<Introduction, About, Get>;
    // A GET that was sent: what for, and the items of the pages that came.
    struct Reading {
        What what;
        std::vector<std::string> items{};
    };

    void take(http::SentEvent const& event);
    [[nodiscard]] std::optional<What> next();
    void again(What const& what);
    [[nodiscard]] static std::string path_of(What const& what);
    void send(Reading reading, std::string const& cursor = {});
    [[nodiscard]] bool introduced(http::Response const& response);
    [[nodiscard]] bool learn_version(http::Response const& response);
    [[nodiscard]] bool apply(Get const& get, Reading& reading, http::Response const& response,
                             Time at);
    [[nodiscard]] bool apply_list(Get const& get, Reading& reading, http::Response const& response,
                                  Time at);

    FollowingCalls const calls_;
    DocumentLimits const limits_;
    Phase phase_ = Phase::waiting;
    Deadline due_{};
    Backoff backoff_;
    std::unique_ptr<http::SseParser> parser_;
    KnownEvent last_;
    bool checks_last_ = false;  // the next event has to be that one
    bool has_read_ = false;     // everything was asked for once
    HostDocuments documents_;
    // What is still to be read.
    bool wants_introduction_ = false;
    bool wants_about_ = false;
    Refresh refresh_;
    std::map<std::uint64_t, Reading> in_flight_;  // by number
    std::uint64_t numbers_ = 0;
    bool catching_up_ = true;
    std::optional<Time> catching_up_since_;
    std::optional<Time> unreachable_since_;
    std::string unreachable_why_;
    std::string version_;
    std::string trouble_;
};

}  // namespace vfmgr::fleet
