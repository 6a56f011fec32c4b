// SPDX-License-Identifier: Apache-2.0
// The routes of /v1, one file per noun. Handlers parse and answer; the engine does the work.
#pragma once

#include <vector>

#include "service/host_checks.hpp"
#include "service/routes/router.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/proof/interop/interop_responder.hpp"

namespace vfmgr {

[[nodiscard]] std::vector<Route> root_routes(Engine& engine);
[[nodiscard]] std::vector<Route> host_routes(HostChecks& checks);
[[nodiscard]] std::vector<Route> pf_routes(Engine& engine);
[[nodiscard]] std::vector<Route> firmware_routes(Engine& engine, FirmwareQuery& query);
[[nodiscard]] std::vector<Route> vm_routes(Engine& engine);
[[nodiscard]] std::vector<Route> attachment_routes(Engine& engine);
[[nodiscard]] std::vector<Route> interop_routes(Engine& engine,
                                                interop::InteropResponder& responder);
[[nodiscard]] std::vector<Route> rdma_link_routes(Engine& engine);
[[nodiscard]] std::vector<Route> operation_routes(Engine& engine, Clock& clock);
[[nodiscard]] std::vector<Route> audit_routes(Engine& engine);
[[nodiscard]] std::vector<Route> token_routes(Engine& engine, Clock& clock);

// Answers with the result of `work` on the state. It runs on the control thread in the caller's
// turn, and answers once readers observe its effect: a token reported as revoked no longer works.
void answer_in_turn(Engine& engine, Call const& call, http::Respond respond,
                    std::function<http::Response(Control::State&)> work);

// Submits the command and answers: 202 with the operation, 200 with the plan of a dry run, 200 with
// `nothing` if there was nothing to do.
void submit(Engine& engine, Call const& call, Command command, http::Respond respond,
            std::function<http::Response()> nothing);

}  // namespace vfmgr
