// SPDX-License-Identifier: Apache-2.0
// The host's guest plane, as vf-guest calls it (api/openapi-guest.yaml). Blocking; one thread. A
// copy, for another thread, shares its pace with the original.
#pragma once

#include <chrono>
#include <memory>

#include "api/http/http.hpp"
#include "api/types/stream.hpp"
#include "api/types/topology.hpp"
#include "api/types/turn.hpp"
#include "guest-tools/net/pace.hpp"

namespace vfmgr::guest {

class HostClient {
  public:
    explicit HostClient(http::Target target) : client_(std::move(target)) {}

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
    [[nodiscard]] Result<Verification> report_error(std::string const& run,
                                                    std::string const& nonce, Error const& error);

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
