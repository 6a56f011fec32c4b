// SPDX-License-Identifier: Apache-2.0
// The enrolment of a guest that reaches the host by TCP. Only the answer that makes it contains its
// token.
#include <fmt/format.h>

#include <functional>

#include "api/os/random.hpp"
#include "api/types/json.hpp"
#include "service/guest/access.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

// Long enough to prepare a VM, and start it the next morning.
constexpr std::chrono::hours token_time{24};

Result<Enrolment> without_token(Snapshot const& now, std::string const& id) {
    VFMGR_TRY(auto const* const attachment, attachment_to_enrol(*now.desired, id));
    auto const carried = network_of(now.desired->networks, *attachment);
    if (carried && attachment->address && attachment->settings.mac)
        return enrolment_of(*attachment, *carried);
    return fail(Problem::conflict, fmt::format("attachment {} has no network any more", id),
                "detach the VF and attach it again");
}

Result<Query<http::Response>> enrol(EnrolmentSeams const& seams, Call const& call,
                                    Snapshot const& now) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(auto enrolment, without_token(now, id));
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run)
        return dry_run_response({fmt::format(
            "the guest of attachment {} can enrol by a new token; an earlier one is no longer good",
            id)});
    VFMGR_TRY(enrolment.fingerprint, seams.guests.fingerprint());
    enrolment.token = random_hex(32);
    enrolment.expires_at = seams.clock.now() + token_time;
    GuestSecret const token{token_sha256(enrolment.token), enrolment.expires_at};
    return seams.engine.save_enrolment(id, token).then(
        [enrolment](GuestKeys const&) -> Result<http::Response> {
            return json_response(201, enrolment);
        });
}

}  // namespace

std::vector<Route> enrolment_routes(EnrolmentSeams seams) {
    return {{"POST",
             "/v1/attachments/{id}/enrolment",
             Role::operator_,
             std::bind_front(enrol, seams),
             {"dry_run"},
             for_tenants_too}};
}

}  // namespace vfmgr
