// SPDX-License-Identifier: Apache-2.0
// How fast one VM queries its host: somewhat slower than the host's limit (GuestPlaneLimits), since
// the host refuses faster requests, and a refusal ends a test. Any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "api/http/http.hpp"
#include "api/types/enrolment.hpp"
#include "api/types/guest.hpp"
#include "api/types/time.hpp"
#include "api/types/topology.hpp"

namespace vfmgr::guest {

class Pace {
  public:
    // This many at once after a pause, then this many per second.
    struct Limit {
        double burst = 1;  // at least 1
        double per_second = 1;
    };
    explicit Pace(Limit limit);
    // Returns when a request made now may begin: `now`, or later. Each call is one more turn.
    [[nodiscard]] Deadline turn(Deadline now);
    // Takes a turn and waits for it.
    void await();
    // Cancels the last turn, which the host did not count.
    void free();

  private:
    Deadline::duration const interval_;
    Deadline::duration const saved_max_;
    std::mutex mutex_;
    Deadline next_{};
};

// Detail, causes and remedy, for the host and for the log.
[[nodiscard]] std::string in_one_line(Error const& error);

// The host's guest plane, as vf-guest calls it (api/openapi-guest.yaml). Blocking; one thread. A
// copy, for another thread, shares its pace with the original.

class HostClient {
  public:
    // `key`: of a guest on TCP; empty without one.
    explicit HostClient(http::Target target, std::string key = {}) : client_(std::move(target)) {
        if (!key.empty()) client_.set_bearer_token(std::move(key));
    }

    // Exchanges an enrolment's token, or the key that the guest has, for a key.
    [[nodiscard]] Result<GuestKey> enrol(std::string const& secret);

    // Returns at once when the host's revision is not `revision`, otherwise after `wait`.
    [[nodiscard]] Result<GuestConfig> config(std::chrono::seconds wait, std::uint64_t revision);
    // Returns where the PCI functions of this VM are on the host.
    [[nodiscard]] Result<HostTopology> topology();
    // Starts a verification of one attachment now. Returns the attachment with run and nonce.
    [[nodiscard]] Result<GuestAttachment> start_run(std::string const& attachment,
                                                    RunRequest const& request);
    // Returns a Turn while other sessions come first: verify::await_turn().
    [[nodiscard]] Result<OrTurn<SessionOffer>> open_session(SessionRequest const& request);
    [[nodiscard]] Result<OrTurn<StreamOffer>> open_stream(std::string const& session,
                                                          StreamRequest const& request);
    [[nodiscard]] Result<void> close_stream(std::string const& session, std::string const& stream);
    // Returns the host's verdict.
    [[nodiscard]] Result<Verification> report(std::string const& session,
                                              GuestReport const& report);
    [[nodiscard]] Result<Verification> report_error(GuestAttachment const& attachment,
                                                    Error const& error);

  private:
    // The host also counts the requests that begin a run or a session separately.
    struct Paces {
        Pace requests{{.burst = 20, .per_second = 4}};
        Pace sessions{{.burst = 10, .per_second = 0.45}};
    };
    template <class T>
    [[nodiscard]] Result<T> ask(http::Request const& request, std::chrono::seconds timeout);
    [[nodiscard]] Result<http::Response> send(http::Request const& request,
                                              std::chrono::seconds timeout);

    http::Client client_;
    std::shared_ptr<Paces> paces_ = std::make_shared<Paces>();
};

}  // namespace vfmgr::guest
