// SPDX-License-Identifier: Apache-2.0
// The routes of /v1, each file those of its nouns. Handlers parse and answer; they do not do.
#pragma once

#include <vector>

#include "guest-tools/stock/stock_responder.hpp"
#include "service/host_checks.hpp"
#include "service/routes/router.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

[[nodiscard]] std::vector<Route> root_routes(Engine& engine);
[[nodiscard]] std::vector<Route> host_routes(HostChecks& checks);
[[nodiscard]] std::vector<Route> pf_routes(Engine& engine);
[[nodiscard]] std::vector<Route> firmware_routes(Engine& engine, FirmwareLook& look);
[[nodiscard]] std::vector<Route> vm_routes(Engine& engine);
[[nodiscard]] std::vector<Route> attachment_routes(Engine& engine);
[[nodiscard]] std::vector<Route> stock_routes(Engine& engine, stock::StockResponder& responder);
[[nodiscard]] std::vector<Route> rdma_link_routes(Engine& engine);
[[nodiscard]] std::vector<Route> operation_routes(Engine& engine, Clock& clock);
[[nodiscard]] std::vector<Route> audit_routes(Engine& engine);
[[nodiscard]] std::vector<Route> token_routes(Engine& engine, Clock& clock);

// Answers with what `work` makes of the state, on the control thread in the caller's turn, when
// readers see what it did: a token that is said to be revoked works no more.
void answer_in_turn(Engine& engine, Call const& call, http::Respond respond,
                    std::function<http::Response(Control::State&)> work);

// Submits and answers: 202 with the operation, 200 with the plan of a dry run, 200 with `nothing`
// when there was nothing to do.
void submit(Engine& engine, Call const& call, Command command, http::Respond respond,
            std::function<http::Response()> nothing);

}  // namespace vfmgr
