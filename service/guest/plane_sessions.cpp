// SPDX-License-Identifier: Apache-2.0
// The guest plane's runs, sessions and streams.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/stream.hpp"
#include "guest-tools/verify/random.hpp"
#include "service/guest/plane.hpp"

namespace vfmgr {
namespace {

using http::json_response;

constexpr std::size_t manual_runs_max = 64;

// Ours to answer for, or another host's, not the guest's doing: the run has its verdict.
bool is_host_failure(Problem problem) {
    return problem == Problem::unsupported || problem == Problem::kernel_refused ||
           problem == Problem::unavailable || problem == Problem::not_found ||
           problem == Problem::conflict || problem == Problem::internal ||
           problem == Problem::unauthorized || problem == Problem::timed_out;
}

}  // namespace

Result<http::Response> GuestPlane::start_run(Job const& job, VmIdentity const& vm) {
    auto const& body = job.request.body;
    VFMGR_TRY(auto const wish, from_json_text<RunWish>(body.empty() ? "{}" : body));
    RunTicket const ticket{job.route.id, verify::random_hex(8), verify::random_hex(16),
                           wish.profile};
    {
        std::lock_guard const lock(mutex_);
        if (manual_runs_.size() >= manual_runs_max) manual_runs_.erase(manual_runs_.begin());
        manual_runs_.insert(ticket.run);
    }
    VFMGR_TRY(auto const before, hooks_.access(vm));
    if (std::ranges::find(before.attachments, ticket.attachment, &GuestAttachment::attachment) ==
        before.attachments.end())
        return fail(Problem::not_found, "this VM has no such attachment",
                    "read /guest/v1/config for the ones it has");
    VFMGR_CHECK(hooks_.start_run(vm, ticket));
    VFMGR_TRY(auto const access, hooks_.access(vm));
    for (auto const& attachment : access.attachments)
        if (attachment.attachment == ticket.attachment && attachment.run == ticket.run)
            return json_response(201, attachment);
    return fail(Problem::conflict, "another verification of this attachment has begun",
                "wait for it to end, then try again");
}

Result<Permitted> GuestPlane::permit_of(VmIdentity const& vm, std::string const& run) {
    VFMGR_TRY(auto access, hooks_.access(vm));
    auto const found = std::ranges::find(access.permits, run, &verify::SessionPermit::run);
    if (found == access.permits.end() || run.empty())
        return fail(Problem::not_found, "no attachment of this VM has such a run",
                    "read /guest/v1/config for the runs that are wanted");
    Permitted permitted{std::move(*found), {}};
    if (auto const remote = access.remotes.find(run); remote != access.remotes.end())
        permitted.remote = remote->second;
    return permitted;
}

Result<http::Response> GuestPlane::open_session(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const request, from_json_text<SessionRequest>(job.request.body));
    VFMGR_TRY(auto const run, permit_of(vm, request.run));
    auto const started_at = clock_.now();
    auto const offer = responders_.open(run, request);
    if (!offer) {
        if (is_host_failure(offer.error().problem)) {
            auto verification = verify::judge_refusal(run.permit, offer.error());
            deliver(verification, run, started_at);
        }
        return fail(offer.error());
    }
    VFMGR_CHECK(remember(*offer, {vm, run, started_at}));
    return json_response(201, *offer);
}

Result<void> GuestPlane::remember(SessionOffer const& offer, Session session) {
    std::lock_guard const lock(mutex_);
    std::erase_if(sessions_, [&](auto const& entry) {
        return entry.second.run.permit.attachment == session.run.permit.attachment;
    });
    // Ids are random; another host may not choose one to get at somebody's session.
    if (sessions_.emplace(offer.session, std::move(session)).second) return {};
    return fail(Problem::conflict, "this session is another one's", "verify again");
}

Result<http::Response> GuestPlane::close_session(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const report, from_json_text<GuestReport>(job.request.body));
    Session session;
    {
        std::lock_guard const lock(mutex_);
        VFMGR_TRY(auto const found, find_session(job, vm));
        session = std::move(found->second);
        sessions_.erase(found);
    }
    auto verification = responders_.close(session.run, job.route.id, report);
    // Another host's verdict can't be asked for again: the run ends here and says why.
    if (!verification && session.run.remote) {
        auto failed = verify::judge_refusal(session.run.permit, verification.error());
        failed.detail = "no verdict came: " + detail_with_causes(verification.error());
        verification = std::move(failed);
    }
    if (!verification) return fail(verification.error());
    deliver(*verification, session.run, session.started_at);
    return json_response(200, *verification);
}

// Somebody else's session is none: nothing is to be learned by asking.
Result<GuestPlane::Sessions::iterator> GuestPlane::find_session(Job const& job,
                                                                VmIdentity const& vm) {
    auto const found = sessions_.find(job.route.id);
    if (found != sessions_.end() && found->second.vm == vm) return found;
    return fail(Problem::not_found, "this VM has no such session",
                "its time may be over: start a new run");
}

Result<Permitted> GuestPlane::require_session(Job const& job, VmIdentity const& vm) {
    std::lock_guard const lock(mutex_);
    VFMGR_TRY(auto const found, find_session(job, vm));
    return found->second.run;
}

Result<http::Response> GuestPlane::open_stream(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const run, require_session(job, vm));
    VFMGR_TRY(auto const request, from_json_text<StreamRequest>(job.request.body));
    VFMGR_TRY(auto const offer, responders_.open_stream(run, job.route.id, request));
    return json_response(201, offer);
}

Result<http::Response> GuestPlane::close_stream(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const run, require_session(job, vm));
    responders_.close_stream(run, job.route.id, job.route.stream);
    http::Response response;
    response.status = 204;
    return response;
}

Result<http::Response> GuestPlane::take_error(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const report, from_json_text<GuestReport>(job.request.body));
    VFMGR_TRY(auto const run, permit_of(vm, job.route.id));
    if (report.nonce != run.permit.nonce)
        return fail(Problem::forbidden, "the nonce is not that of this run",
                    "read /guest/v1/config again");
    end_session_of(run.permit.run);
    auto verification = verify::judge_error(run.permit, report.error);
    deliver(verification, run, clock_.now());
    return json_response(200, verification);
}

void GuestPlane::end_session_of(std::string const& run) {
    Sessions ended;
    {
        std::lock_guard const lock(mutex_);
        for (auto at = sessions_.begin(); at != sessions_.end();) {
            auto const one = at++;
            if (one->second.run.permit.run == run) ended.insert(sessions_.extract(one));
        }
    }
    for (auto const& [id, session] : ended) responders_.drop(session.run, id);
}

void GuestPlane::deliver(Verification& verification, Permitted const& run, Time started_at) {
    if (run.remote) verification.responder = to_string(run.remote->place);
    verification.started_at = started_at;
    verification.finished_at = clock_.now();
    hooks_.on_verification(verification);
    std::lock_guard const lock(mutex_);
    manual_runs_.erase(verification.run);
}

// Detached, stopped, or a new run: what the VM may do has changed under the session.
void GuestPlane::end_forbidden_sessions() {
    Sessions open;
    {
        std::lock_guard const lock(mutex_);
        open = sessions_;
    }
    for (auto const& [id, session] : open) {
        auto const now = permit_of(session.vm, session.run.permit.run);
        if (now && *now == session.run) continue;
        {
            std::lock_guard const lock(mutex_);
            if (sessions_.erase(id) == 0) continue;  // reported meanwhile
        }
        responders_.drop(session.run, id);
    }
}

}  // namespace vfmgr
