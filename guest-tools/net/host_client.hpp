// SPDX-License-Identifier: Apache-2.0
// The host's guest plane, as vf-guest calls it (api/openapi-guest.yaml). Blocking; one thread.
#pragma once

#include <chrono>

#include "api/http/http.hpp"
#include "api/types/stream.hpp"

namespace vfmgr::guest {

class HostClient {
  public:
    explicit HostClient(http::Target target) : client_(std::move(target)) {}

    // Answers at once when the host's revision is not `revision`, otherwise after `wait`.
    [[nodiscard]] Result<GuestConfig> config(std::chrono::seconds wait, std::uint64_t revision);
    // A verification of one attachment, now; the attachment comes back with run and nonce.
    [[nodiscard]] Result<GuestAttachment> start_run(std::string const& attachment,
                                                    RunWish const& wish);
    [[nodiscard]] Result<SessionOffer> open_session(SessionRequest const& request);
    [[nodiscard]] Result<StreamOffer> open_stream(std::string const& session,
                                                  StreamRequest const& request);
    [[nodiscard]] Result<void> close_stream(std::string const& session, std::string const& stream);
    // The host's verdict.
    [[nodiscard]] Result<Verification> report(std::string const& session,
                                              GuestReport const& report);
    [[nodiscard]] Result<Verification> report_error(std::string const& run,
                                                    std::string const& nonce, Error const& error);

  private:
    http::Client client_;
};

}  // namespace vfmgr::guest
