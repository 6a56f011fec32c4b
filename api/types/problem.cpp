// SPDX-License-Identifier: Apache-2.0
#include "api/types/problem.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/types/enum_names.hpp"
#include "api/types/exit.hpp"

namespace vfmgr {
namespace {

struct Row {
    Problem problem;
    std::string_view title;
    int http_status;
    Exit exit;
};
constexpr std::array rows = {
    Row{Problem::invalid_request, "Request is not valid", 400, Exit::usage},
    Row{Problem::unauthorized, "Not authenticated", 401, Exit::not_permitted},
    Row{Problem::forbidden, "Not permitted", 403, Exit::not_permitted},
    Row{Problem::not_found, "Not found", 404, Exit::not_found},
    Row{Problem::method_not_allowed, "Method is not allowed here", 405, Exit::failed},
    Row{Problem::conflict, "Conflicts with what exists", 409, Exit::refused},
    Row{Problem::precondition_failed, "Changed in the meantime", 412, Exit::refused},
    Row{Problem::vf_in_use, "VF is in use", 409, Exit::refused},
    Row{Problem::link_in_use, "RDMA link is in use", 409, Exit::refused},
    Row{Problem::other_owner, "PF is managed by something else", 409, Exit::refused},
    Row{Problem::pf_renumbered, "PF is at another address", 409, Exit::refused},
    Row{Problem::pf_gone, "PF is gone", 409, Exit::refused},
    Row{Problem::unsupported, "Not supported by this host, driver or VM", 422, Exit::refused},
    Row{Problem::limit_exceeded, "Limit is exceeded", 422, Exit::refused},
    // Not 429: it does not pass by itself, and clients repeat such requests.
    Row{Problem::quota_exceeded, "Quota is exceeded", 403, Exit::refused},
    // A layer below us refused.
    Row{Problem::kernel_refused, "Kernel refused", 502, Exit::failed},
    Row{Problem::hypervisor_refused, "Hypervisor refused", 502, Exit::failed},
    Row{Problem::guest_refused, "Guest refused or verification failed", 502, Exit::failed},
    Row{Problem::timed_out, "Timed out", 504, Exit::timed_out},
    Row{Problem::cancelled, "Cancelled", 409, Exit::failed},
    Row{Problem::unavailable, "Not available now", 503, Exit::unreachable},
    Row{Problem::pf_stuck, "PF is stuck in the kernel", 503, Exit::refused},
    Row{Problem::pci_busy, "PCI subsystem is busy", 503, Exit::refused},
    Row{Problem::internal, "Internal error", 500, Exit::failed},
};

constexpr bool in_order() {
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].problem != static_cast<Problem>(i)) return false;
    return enum_names<Problem>.size() == rows.size();
}
static_assert(in_order(), "one row for each Problem, in the order of their declaration");

constexpr Row const& row(Problem problem) {
    return rows[static_cast<std::size_t>(problem)];
}

std::string text_at(nlohmann::json const& object, char const* key) {
    auto const found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Returns the members of `array` that are objects. An absent or wrong member yields an empty list.
std::vector<nlohmann::json> objects_at(nlohmann::json const& object, char const* key) {
    std::vector<nlohmann::json> objects;
    auto const found = object.find(key);
    if (found == object.end() || !found->is_array()) return objects;
    for (auto const& item : *found)
        if (item.is_object()) objects.push_back(item);
    return objects;
}

}  // namespace

Error discreetly(Error error) {
    error.discreet = {error.detail, error.remedy};
    return error;
}

Error discreetly(Error error, std::string detail, std::string remedy) {
    error.discreet = {std::move(detail), std::move(remedy)};
    return error;
}

// What failed beneath it, and which revision is the current one, is written for admins.
Error for_tenants(Error const& error) {
    Error shown{error.problem, std::string(title(error.problem)),
                "ask an admin of this host: the log has the reason, under the request's id"};
    if (!error.discreet) return shown;
    shown.detail = error.discreet->detail;
    shown.remedy = error.discreet->remedy;
    shown.violations = error.violations;
    return shown;
}

std::string errno_name(int error) {
    char const* name = strerrorname_np(error);
    return name != nullptr ? std::string(name) : fmt::format("errno {}", error);
}

Cause errno_cause(std::string call, int error) {
    // Unlike strerror, strerrordesc_np is the same in every locale and thread-safe.
    char const* text = strerrordesc_np(error);
    return {std::move(call), errno_name(error), text != nullptr ? text : "unknown error"};
}

std::string_view code(Problem problem) {
    return enum_name(problem);
}

std::string_view title(Problem problem) {
    return row(problem).title;
}

int http_status(Problem problem) {
    return row(problem).http_status;
}

int http_status(Error const& error) {
    bool const is_read = error.problem == Problem::invalid_request && !error.violations.empty();
    return is_read ? 422 : http_status(error.problem);
}

int exit_code(Problem problem) {
    return static_cast<int>(row(problem).exit);
}

std::string detail_with_causes(Error const& error) {
    auto out = error.detail;
    for (auto const& cause : error.causes)
        out += " (" + cause.call + ": " + (cause.code.empty() ? cause.text : cause.code) + ")";
    return out;
}

template <>
void Json<Error>::write(nlohmann::json& out, Error const& error) {
    // A reference with a whole path (RFC 9457, 3.1.1): the daemon that sent it explains it there.
    out = {{"type", "/v1/problems/" + std::string(code(error.problem))},
           {"title", title(error.problem)},
           {"status", http_status(error)},
           {"code", code(error.problem)},
           {"detail", error.detail}};
    if (!error.remedy.empty()) out["remedy"] = error.remedy;
    for (auto const& cause : error.causes)
        out["cause"].push_back({{"call", cause.call}, {"code", cause.code}, {"text", cause.text}});
    for (auto const& violation : error.violations)
        out["violations"].push_back({{"pointer", violation.pointer}, {"detail", violation.detail}});
    if (error.revision) out["revision"] = *error.revision;
}

Error error_from_json(nlohmann::json const& problem_document) {
    Error error{Problem::internal, {}, {}};
    if (!problem_document.is_object()) {
        error.detail = "the answer is not a problem document";
        return error;
    }
    error.problem = enum_value<Problem>(text_at(problem_document, "code")).value_or(error.problem);
    error.detail = text_at(problem_document, "detail");
    error.remedy = text_at(problem_document, "remedy");
    for (auto const& cause : objects_at(problem_document, "cause"))
        error.causes.push_back(
            {text_at(cause, "call"), text_at(cause, "code"), text_at(cause, "text")});
    for (auto const& violation : objects_at(problem_document, "violations"))
        error.violations.push_back({text_at(violation, "pointer"), text_at(violation, "detail")});
    auto const revision = problem_document.find("revision");
    if (revision != problem_document.end() && revision->is_number_unsigned())
        error.revision = revision->get<std::uint64_t>();
    return error;
}

}  // namespace vfmgr
