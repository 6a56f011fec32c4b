// SPDX-License-Identifier: Apache-2.0
#include "api/types/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

namespace vfmgr {

namespace {

constexpr std::array all_problems{
    Problem::invalid_request, Problem::unauthorized,       Problem::forbidden,
    Problem::not_found,       Problem::method_not_allowed, Problem::conflict,
    Problem::vf_in_use,       Problem::other_owner,        Problem::unsupported,
    Problem::limit_exceeded,  Problem::kernel_refused,     Problem::hypervisor_refused,
    Problem::guest_refused,   Problem::timed_out,          Problem::unavailable,
    Problem::internal};

std::string text_at(nlohmann::json const& object, char const* key) {
    auto const found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The members of `array` that are objects; an absent or wrong member is an empty list.
std::vector<nlohmann::json> objects_at(nlohmann::json const& object, char const* key) {
    std::vector<nlohmann::json> objects;
    auto const found = object.find(key);
    if (found == object.end() || !found->is_array()) return objects;
    for (auto const& item : *found)
        if (item.is_object()) objects.push_back(item);
    return objects;
}

}  // namespace

std::string errno_name(int error) {
    char const* name = strerrorname_np(error);
    return name != nullptr ? std::string(name) : fmt::format("errno {}", error);
}

Cause errno_cause(std::string call, int error) {
    // strerrordesc_np, unlike strerror, is the same in every locale and safe in every thread.
    char const* text = strerrordesc_np(error);
    return {std::move(call), errno_name(error), text != nullptr ? text : "unknown error"};
}

std::string_view code(Problem problem) {
    switch (problem) {
        case Problem::invalid_request:
            return "invalid_request";
        case Problem::unauthorized:
            return "unauthorized";
        case Problem::forbidden:
            return "forbidden";
        case Problem::not_found:
            return "not_found";
        case Problem::method_not_allowed:
            return "method_not_allowed";
        case Problem::conflict:
            return "conflict";
        case Problem::vf_in_use:
            return "vf_in_use";
        case Problem::other_owner:
            return "other_owner";
        case Problem::unsupported:
            return "unsupported";
        case Problem::limit_exceeded:
            return "limit_exceeded";
        case Problem::kernel_refused:
            return "kernel_refused";
        case Problem::hypervisor_refused:
            return "hypervisor_refused";
        case Problem::guest_refused:
            return "guest_refused";
        case Problem::timed_out:
            return "timed_out";
        case Problem::unavailable:
            return "unavailable";
        case Problem::internal:
            return "internal";
    }
    return "internal";
}

std::string_view title(Problem problem) {
    switch (problem) {
        case Problem::invalid_request:
            return "Request is not valid";
        case Problem::unauthorized:
            return "Not authenticated";
        case Problem::forbidden:
            return "Not permitted";
        case Problem::not_found:
            return "Not found";
        case Problem::method_not_allowed:
            return "Method is not allowed here";
        case Problem::conflict:
            return "Conflicts with what exists";
        case Problem::vf_in_use:
            return "VF is in use";
        case Problem::other_owner:
            return "PF is managed by something else";
        case Problem::unsupported:
            return "Not supported by this host, driver or VM";
        case Problem::limit_exceeded:
            return "Limit is exceeded";
        case Problem::kernel_refused:
            return "Kernel refused";
        case Problem::hypervisor_refused:
            return "Hypervisor refused";
        case Problem::guest_refused:
            return "Guest refused or verification failed";
        case Problem::timed_out:
            return "Timed out";
        case Problem::unavailable:
            return "Not available now";
        case Problem::internal:
            return "Internal error";
    }
    return "Internal error";
}

int http_status(Problem problem) {
    switch (problem) {
        case Problem::invalid_request:
            return 400;
        case Problem::unauthorized:
            return 401;
        case Problem::forbidden:
            return 403;
        case Problem::not_found:
            return 404;
        case Problem::method_not_allowed:
            return 405;
        case Problem::conflict:
        case Problem::vf_in_use:
        case Problem::other_owner:
            return 409;
        case Problem::unsupported:
        case Problem::limit_exceeded:
            return 422;
        case Problem::kernel_refused:
        case Problem::hypervisor_refused:
        case Problem::guest_refused:
            return 502;  // what is behind us said no
        case Problem::unavailable:
            return 503;
        case Problem::timed_out:
            return 504;
        case Problem::internal:
            return 500;
    }
    return 500;
}

int exit_code(Problem problem) {
    switch (problem) {
        case Problem::invalid_request:
            return 2;
        case Problem::not_found:
            return 3;
        case Problem::conflict:
        case Problem::vf_in_use:
        case Problem::other_owner:
        case Problem::unsupported:
        case Problem::limit_exceeded:
            return 4;
        case Problem::unauthorized:
        case Problem::forbidden:
            return 5;
        case Problem::unavailable:
            return 6;
        case Problem::timed_out:
            return 7;
        case Problem::method_not_allowed:
        case Problem::kernel_refused:
        case Problem::hypervisor_refused:
        case Problem::guest_refused:
        case Problem::internal:
            return 1;
    }
    return 1;
}

void to_json(nlohmann::json& out, Error const& error) {
    // The type is the section's name in api/problems.md, and sections are named in kebab case.
    std::string kebab(code(error.problem));
    std::replace(kebab.begin(), kebab.end(), '_', '-');
    out = {{"type", "https://vfmgr.example/problems/" + kebab},
           {"title", title(error.problem)},
           {"status", http_status(error.problem)},
           {"code", code(error.problem)},
           {"detail", error.detail}};
    if (!error.remedy.empty()) out["remedy"] = error.remedy;
    for (auto const& cause : error.causes)
        out["cause"].push_back({{"call", cause.call}, {"code", cause.code}, {"text", cause.text}});
    for (auto const& violation : error.violations)
        out["violations"].push_back({{"pointer", violation.pointer}, {"detail", violation.detail}});
}

Error error_from_json(nlohmann::json const& problem_document) {
    Error error{Problem::internal, {}, {}};
    if (!problem_document.is_object()) {
        error.detail = "the answer is not a problem document";
        return error;
    }
    auto const wanted = text_at(problem_document, "code");
    for (auto const problem : all_problems)
        if (code(problem) == wanted) error.problem = problem;
    error.detail = text_at(problem_document, "detail");
    error.remedy = text_at(problem_document, "remedy");
    for (auto const& cause : objects_at(problem_document, "cause"))
        error.causes.push_back(
            {text_at(cause, "call"), text_at(cause, "code"), text_at(cause, "text")});
    for (auto const& violation : objects_at(problem_document, "violations"))
        error.violations.push_back({text_at(violation, "pointer"), text_at(violation, "detail")});
    return error;
}

}  // namespace vfmgr
