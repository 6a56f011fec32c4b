// SPDX-License-Identifier: Apache-2.0
// The guest plane's runs, sessions and streams.

#include <algorithm>

#include "api/os/random.hpp"
#include "api/types/guest.hpp"
#include "api/types/json.hpp"
#include "service/guest/plane.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"

namespace vfmgr {
namespace {

using http::json_response;

// True for a failure of this host or another one, not of the guest: it becomes the run's verdict.
bool is_host_failure(Problem problem) {
    return problem == Problem::unsupported || problem == Problem::kernel_refused ||
           problem == Problem::unavailable || problem == Problem::not_found ||
           problem == Problem::conflict || problem == Problem::internal ||
           problem == Problem::unauthorized || problem == Problem::timed_out;
}

}  // namespace

Result<http::Response> GuestPlane::start_run(Job const& job, VmIdentity const& vm) {
    auto const& body = job.request.body;
    VFMGR_TRY(auto const request, from_json_text<RunRequest>(body.empty() ? "{}" : body));
    RunTicket const ticket{job.route.id, random_hex(8), random_hex(16), request.profile};
    VFMGR_TRY(auto const before, hooks_.access(vm));
    if (std::ranges::find(before.attachments, ticket.attachment, &GuestAttachment::attachment) ==
        before.attachments.end())
        return fail(Problem::not_found, "this VM has no such attachment",
                    "read /guest/v1/config for the ones it has");
    {
        // Set before the run begins, or the resident vf-guest would briefly get the run.
        std::lock_guard const lock(mutex_);
        manual_runs_[ticket.attachment] = ticket.run;
    }
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
                    "read /guest/v1/config for the requested runs");
    Permitted permitted{std::move(*found), {}};
    if (auto const remote = access.remotes.find(run); remote != access.remotes.end())
        permitted.remote = remote->second;
    return permitted;
}

Result<http::Response> GuestPlane::open_session(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const request, from_json_text<SessionRequest>(job.request.body));
    VFMGR_TRY(auto const run, permit_of(vm, request.run));
    auto const started_at = clock_.now();
    auto const answer = responders_.open(run, request);
    if (!answer) {
        if (is_host_failure(answer.error().problem)) {
            auto verification = verify::judge_refusal(run.permit, answer.error());
            deliver(verification, run, started_at);
        }
        return fail(answer.error());
    }
    if (auto const* const offer = std::get_if<SessionOffer>(&*answer))
        VFMGR_CHECK(keep(*offer, {vm, run, started_at}));
    else
        free_session(job.guest);
    return serve::offer_response(job.request, *answer);
}

// Waiting for a turn costs no token: the guest asks for the same session again.
void GuestPlane::free_session(GuestNumber guest) {
    std::lock_guard const lock(mutex_);
    session_rates_.free(guest);
}

// The VM's access may have changed while the session was opened; the session ends at once then.
Result<void> GuestPlane::keep(SessionOffer const& offer, Session session) {
    auto const run = session.run;
    auto const vm = session.vm;
    auto kept = remember(offer, std::move(session));
    for (auto const& [id, replaced] : kept.replaced) responders_.drop(replaced.run, id);
    if (!kept.is_new) {
        responders_.drop(run, offer.session);
        return fail(Problem::conflict, "another session has this id already", "verify again");
    }
    if (end_unless_permitted(offer.session, vm, run)) return {};
    return fail(Problem::not_found, "this run ended in the meantime",
                "read /guest/v1/config for the requested runs");
}

GuestPlane::Kept GuestPlane::remember(SessionOffer const& offer, Session session) {
    Kept kept;
    std::lock_guard const lock(mutex_);
    // Ids are random; another host must not choose one to reach another VM's session.
    if (sessions_.contains(offer.session)) return kept;
    kept.is_new = true;
    for (auto at = sessions_.begin(); at != sessions_.end();) {
        auto const one = at++;
        if (one->second.run.permit.attachment == session.run.permit.attachment)
            kept.replaced.insert(sessions_.extract(one));
    }
    sessions_.emplace(offer.session, std::move(session));
    return kept;
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
    // Another host's verdict can't be requested again: the run ends here and reports why.
    if (!verification && session.run.remote) {
        auto failed = verify::judge_refusal(session.run.permit, verification.error());
        failed.detail = "no verdict arrived: " + detail_with_causes(verification.error());
        verification = std::move(failed);
    }
    if (!verification) return fail(verification.error());
    deliver(*verification, session.run, session.started_at);
    return json_response(200, *verification);
}

// Another VM's session counts as absent, so that a guest learns nothing by asking.
Result<GuestPlane::Sessions::iterator> GuestPlane::find_session(Job const& job,
                                                                VmIdentity const& vm) {
    auto const found = sessions_.find(job.route.id);
    if (found != sessions_.end() && found->second.vm == vm) return found;
    return fail(Problem::not_found, "this VM has no such session",
                "it may have timed out: start a new run");
}

Result<Permitted> GuestPlane::require_session(Job const& job, VmIdentity const& vm) {
    std::lock_guard const lock(mutex_);
    VFMGR_TRY(auto const found, find_session(job, vm));
    return found->second.run;
}

Result<http::Response> GuestPlane::open_stream(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const run, require_session(job, vm));
    VFMGR_TRY(auto const request, from_json_text<StreamRequest>(job.request.body));
    VFMGR_TRY(auto const answer, responders_.open_stream(run, job.route.id, request));
    return serve::offer_response(job.request, answer);
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
        return fail(Problem::forbidden, "the nonce does not match this run",
                    "read /guest/v1/config again");
    end_session_of(run.permit.run);
    auto verification = verify::judge_error(run.permit, report);
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
    std::erase_if(manual_runs_,
                  [&](auto const& entry) { return entry.second == verification.run; });
}

// Detached, stopped, or a new run: the VM's permissions have changed under the session.
void GuestPlane::end_forbidden_sessions() {
    Sessions open;
    {
        std::lock_guard const lock(mutex_);
        open = sessions_;
    }
    for (auto const& [id, session] : open)
        static_cast<void>(end_unless_permitted(id, session.vm, session.run));
}

bool GuestPlane::end_unless_permitted(std::string const& id, VmIdentity const& vm,
                                      Permitted const& run) {
    auto const now = permit_of(vm, run.permit.run);
    if (now && *now == run) return true;
    {
        std::lock_guard const lock(mutex_);
        if (sessions_.erase(id) == 0) return false;  // reported meanwhile
    }
    responders_.drop(run, id);
    return false;
}

}  // namespace vfmgr
