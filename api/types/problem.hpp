// SPDX-License-Identifier: Apache-2.0
// One vocabulary of failures: Problem (stable code), Error (value), Result<T>. An Error is a value,
// owned by its holder; any thread.
// Each problem's code, title, HTTP status and exit code are one row of a table.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <vector>

#include "api/types/json_fwd.hpp"

namespace vfmgr {

enum class Problem {
    invalid_request,      // unparsable, or values that no host could accept; see violations
    unauthorized,         // missing or unknown credentials
    forbidden,            // credentials without the required role
    not_found,            // the named object does not exist
    method_not_allowed,   // the path exists, the method does not
    conflict,             // contradicts an existing object
    precondition_failed,  // If-Match names a revision that is not the current one
    vf_in_use,           // the VF, or one that would be removed with it, is used by a VM or process
    link_in_use,         // the RDMA link to remove is in use
    other_owner,         // another program manages this PF
    pf_renumbered,       // another device is at the PF's address, or the PF at another address
    pf_gone,             // the PF is not on this host
    unsupported,         // this host, driver or VM can't do it
    limit_exceeded,      // more than exists or is allowed
    quota_exceeded,      // more than the tenant may have
    kernel_refused,      // the kernel or a driver answered with an error
    hypervisor_refused,  // libvirt or QEMU answered with an error
    guest_refused,       // the guest reported failure, or verification failed
    timed_out,           // no answer within the deadline
    cancelled,           // a client cancelled the operation
    unavailable,         // temporarily: read-only store, libvirt down
    pf_stuck,            // a kernel call for this PF hangs
    pci_busy,            // a hanging PF blocks creating and removing VFs on this host
    internal,            // a bug in vfmgr
};

// One failed call beneath an Error: {"write sriov_numvfs", "EBUSY", "Device or resource busy"}.
struct Cause {
    std::string call;
    std::string code;
    std::string text;
    bool operator==(Cause const&) const = default;
};

// One place in a request that can't be accepted. `pointer` is a JSON pointer (RFC 6901).
struct Violation {
    std::string pointer;
    std::string detail;
    bool operator==(Violation const&) const = default;
};

// What a tenant reads in place of an error's own sentences, which may name what is not its own.
struct Discreet {
    std::string detail;
    std::string remedy;
    bool operator==(Discreet const&) const = default;
};

struct Error {
    Problem problem = Problem::internal;
    std::string detail;  // one sentence; names the device and the value
    std::string remedy;  // how to fix it; empty only where nothing helps
    std::vector<Cause> causes{};
    std::vector<Violation> violations{};
    std::optional<std::uint64_t> revision{};  // the current one, where If-Match names another
    std::optional<Discreet> discreet{};       // absent: a tenant gets the problem's title alone
    bool operator==(Error const&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Problem problem, std::string detail,
                                                std::string remedy = {}) {
    return tl::unexpected<Error>(Error{problem, std::move(detail), std::move(remedy)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}
// Lets a tenant read the error's own sentences: they name only what the request names, or its
// sender has.
[[nodiscard]] Error discreetly(Error error);
[[nodiscard]] Error discreetly(Error error, std::string detail, std::string remedy);
// Returns what a tenant gets of it.
[[nodiscard]] Error for_tenants(Error const& error);
// Returns "ENODEV" for 19: the symbolic name that strace and man pages use.
[[nodiscard]] std::string errno_name(int error);
[[nodiscard]] Cause errno_cause(std::string call, int error);

// Returns "detail (call: EBUSY)", for places with room for one sentence.
[[nodiscard]] std::string detail_with_causes(Error const& error);

[[nodiscard]] std::string_view code(Problem problem);   // "vf_in_use"
[[nodiscard]] std::string_view title(Problem problem);  // "VF is in use"
[[nodiscard]] int http_status(Problem problem);
// 422 where a body is JSON, but what it says can't be accepted: the error then has violations.
[[nodiscard]] int http_status(Error const& error);
// How vfctl ends for it: a code of exit.hpp.
[[nodiscard]] int exit_code(Problem problem);

// Writes the RFC 9457 members without `instance` and `request_id`, which the HTTP layer adds.
template <>
void Json<Error>::write(nlohmann::json& out, Error const& error);
// Lenient: accepts what a server sent or the journal holds; never fails.
[[nodiscard]] Error error_from_json(nlohmann::json const& problem_document);

// Contains exceptions. One that leaves a thread ends the program, and a single request must never
// do that. Pure; any thread.

// Runs `work` and returns its Result; fails with internal if it throws.
template <class Work>
[[nodiscard]] std::invoke_result_t<Work> guarded(Work work) {
    try {
        return work();
    } catch (std::exception const& bug) {
        return fail(Problem::internal, std::string("an exception ended the request: ") + bug.what(),
                    "report this with the daemon's log");
    }
}

}  // namespace vfmgr

// The project's two macros: propagate an error, or bind the value.
#define VFMGR_CONCAT_INNER(a, b) a##b
#define VFMGR_CONCAT(a, b) VFMGR_CONCAT_INNER(a, b)
#define VFMGR_TRY_IMPL(result, declaration, expression)              \
    auto&& result = (expression);                                    \
    if (!result) return ::tl::unexpected(std::move(result).error()); \
    declaration = std::move(*result)
#define VFMGR_TRY(declaration, expression) \
    VFMGR_TRY_IMPL(VFMGR_CONCAT(vfmgr_result_, __LINE__), declaration, expression)
#define VFMGR_CHECK(expression)                                        \
    do {                                                               \
        if (auto&& vfmgr_checked = (expression); !vfmgr_checked)       \
            return ::tl::unexpected(std::move(vfmgr_checked).error()); \
    } while (false)
