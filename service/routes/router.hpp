// SPDX-License-Identifier: Apache-2.0
// One table of routes: method, path, role, what to do. Denies by default. On the io thread: nothing
// here blocks; answers that take time are given later through the Respond.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/pci_address.hpp"
#include "service/auth/principal.hpp"

namespace vfmgr {

struct Call {
    http::Request request;
    Principal who;
    std::map<std::string, std::string> ids;  // {pci} and its like, from the path
};

struct Route {
    std::string method;
    std::string path;  // "/v1/pfs/{pci}/vfs/{index}"
    Role role;
    std::function<void(Call const&, http::Respond)> handle;
    std::vector<std::string> query{};  // the parameters that it knows; others are refused
};

using Authenticate = std::function<Result<Principal>(http::Request const&)>;
// Told of every request that could change something, once it was answered.
using Audit = std::function<void(Call const&, http::Response const&)>;

[[nodiscard]] http::Handler router(std::vector<Route> routes, Authenticate authenticate,
                                   Audit audit);

// --- what handlers parse and answer with ---------------------------------------------------

using http::json_response;
// The problem of `error` for this call.
[[nodiscard]] http::Response refusal(Call const& call, Error const& error);
// {"items": […], "next": null}
[[nodiscard]] http::Response list_response(nlohmann::json items);
[[nodiscard]] Result<PciAddress> pf_id(Call const& call);
[[nodiscard]] Result<std::uint16_t> vf_index(Call const& call);
// The answer to a dry run of what has no steps on the host: these sentences say what would be.
[[nodiscard]] http::Response dry_run_response(std::vector<std::string> notes);
// ?dry_run=true; anything but true and false is refused.
[[nodiscard]] Result<bool> wants_dry_run(Call const& call);
// If-Match: "7", with or without quotes.
[[nodiscard]] Result<std::optional<std::uint64_t>> if_match(Call const& call);
// ?wait=30, in seconds, at most `most`; absent: 0.
[[nodiscard]] Result<std::uint32_t> wait_seconds(Call const& call, std::uint32_t most);

}  // namespace vfmgr
