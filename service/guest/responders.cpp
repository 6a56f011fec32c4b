// SPDX-License-Identifier: Apache-2.0
#include "service/guest/responders.hpp"

#include "vfmgr/proof/serve/remote_responder.hpp"

namespace vfmgr {
namespace {

// Returned while calls to other hosts take up all places.
constexpr Turn call_turn{1, 2, false};

}  // namespace

Result<Held> Responders::begin_call() {
    std::unique_lock lock(mutex_);
    if (remote_calls_ >= remote_calls_max_)
        return fail(Problem::unavailable,
                    "too many calls to responders of other hosts are still running",
                    "try again in a few seconds");
    ++remote_calls_;
    lock.unlock();  // if there is no memory, held() ends the call at once
    return held([this] {
        std::lock_guard const ending(mutex_);
        --remote_calls_;
    });
}

Result<OrTurn<SessionOffer>> Responders::open(Permitted const& run, SessionRequest const& request) {
    if (!run.remote) return own_.open(run.permit, request);
    auto const call = begin_call();
    if (!call) return call_turn;
    return serve::RemoteResponder(*run.remote).open(run.permit, request);
}

Result<OrTurn<StreamOffer>> Responders::open_stream(Permitted const& run,
                                                    std::string const& session,
                                                    StreamRequest const& request) {
    if (!run.remote) return own_.open_stream(session, request);
    auto const call = begin_call();
    if (!call) return call_turn;
    return serve::RemoteResponder(*run.remote).open_stream(session, request);
}

// A stream that can't be closed now ends by itself on the other host, with its session or at its
// time limit.
void Responders::close_stream(Permitted const& run, std::string const& session,
                              std::string const& stream) {
    if (!run.remote) return own_.close_stream(session, stream);
    if (auto const call = begin_call())
        serve::RemoteResponder(*run.remote).close_stream(session, stream);
}

Result<Verification> Responders::close(Permitted const& run, std::string const& session,
                                       GuestReport const& report) {
    if (!run.remote) return own_.close(session, report);
    VFMGR_TRY(auto const call, begin_call());
    return serve::RemoteResponder(*run.remote).close(session, run.permit, report);
}

void Responders::drop(Permitted const& run, std::string const& session) {
    if (!run.remote) return own_.drop(session);
    if (auto const call = begin_call()) serve::RemoteResponder(*run.remote).drop(session);
}

}  // namespace vfmgr
