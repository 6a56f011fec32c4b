// SPDX-License-Identifier: Apache-2.0
// The connection to libvirt, opened when first needed and again after it broke, and the only way to
// call libvirt: its calls have no timeout, so each batch runs in a thread of its own that is
// abandoned at the deadline. Any thread.
#pragma once

#include <libvirt/libvirt.h>

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "vfmgr/hypervisor/libvirt_events.hpp"

namespace vfmgr {

class LibvirtSession {
  public:
    LibvirtSession(std::string uri, std::shared_ptr<LibvirtEvents> events);
    ~LibvirtSession();
    LibvirtSession(LibvirtSession const&) = delete;
    LibvirtSession& operator=(LibvirtSession const&) = delete;

    // Runs `work` on the open connection; `doing` describes it ("plug … into VM vm1"). `work` may
    // outlive this call and this object: it must own everything that it touches. When it does not
    // return by the deadline, its connection is dropped and the answer is timed_out: libvirtd may
    // still be doing it.
    template <class T>
    [[nodiscard]] Result<T> call(Deadline deadline, std::string const& doing,
                                 std::function<Result<T>(virConnectPtr)> work);

  private:
    struct Connection;
    struct State;
    struct Turn;  // one call, from begin() to the end of its thread

    static Result<std::shared_ptr<Turn>> begin(std::shared_ptr<State> const& state);
    static Result<virConnectPtr> connect(Turn& turn);
    static virConnectPtr use(Turn& turn, std::shared_ptr<Connection> connection);
    static void finish(Turn& turn);
    static void discard(std::shared_ptr<Connection> connection);
    [[nodiscard]] Error abandon(Turn& turn, std::string const& doing);

    std::shared_ptr<State> state_;
};

template <class T>
Result<T> LibvirtSession::call(Deadline deadline, std::string const& doing,
                               std::function<Result<T>(virConnectPtr)> work) {
    VFMGR_TRY(std::shared_ptr<Turn> turn, begin(state_));
    std::promise<Result<T>> promise;
    auto answer = promise.get_future();
    std::thread([turn, work = std::move(work), promise = std::move(promise)]() mutable {
        try {
            auto connection = connect(*turn);
            promise.set_value(connection ? work(*connection)
                                         : Result<T>(tl::unexpected(connection.error())));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
        finish(*turn);
    }).detach();
    if (answer.wait_until(deadline) == std::future_status::ready) return answer.get();
    return fail(abandon(*turn, doing));
}

}  // namespace vfmgr
