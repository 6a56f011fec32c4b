// SPDX-License-Identifier: Apache-2.0
// One verification from beginning to end: session, tests, report and verdict. Blocking, up to the
// offer's deadline; one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"
#include "guest-tools/net/host_client.hpp"
#include "guest-tools/net/vf_report.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::guest {

// vf-guest runs interop::ping_by_cm() on the arguments after this word.
inline constexpr char const* cm_ping_command = "cm-ping";

// The other end of the tests: the host's guest plane, or a served responder.
struct TestHost {
    std::function<Result<OrTurn<SessionOffer>>(SessionRequest const&)> open;
    std::function<verify::StreamHost(std::string const& session)> streams;
    std::function<Result<Verification>(std::string const& session, GuestReport const&)> report;
    // Reports that the tests can't even start.
    std::function<Result<Verification>(Error const&)> cannot;
    // Other tests of this VM wait for this one to begin, so it must not wait for them.
    bool at_once = false;
    std::function<void()> ready{};  // called before the tests begin; may be empty
};

// Returns the TestHost of this VM's host. It also reports to the host what could not be tested at
// all, and returns the host's verdict. `host` must outlive it; the attachment has a run.
[[nodiscard]] TestHost guest_plane(HostClient& host, GuestAttachment const& attachment);

// The tests of figures, with those that need programs and drivers of this VM.
[[nodiscard]] std::vector<verify::Measurement> own_tests();

// The subject's attachment has a run. Fails only when the other end can't be queried or refuses.
// Runs `measured` after the proofs; calls `on_test` with each test as it ends.
[[nodiscard]] Result<VfReport> run_tests(TestHost const& host, verify::Subject const& subject,
                                         std::vector<verify::Measurement> const& measured,
                                         verify::GuestSession::OnTest on_test = {});

// Several verifications, each of another VF: one after the other, or all at once, which finds VFs
// that work alone but not together. Blocking.

struct OneVerification {
    std::string attachment;
    // Blocking. Calls `ready` once when only the tests are left to do, and begins them when it
    // returns; does not call it when it can't test. At once: on a thread of its own.
    std::function<Result<VfReport>(std::function<void()> const& ready)> run;
};

enum class Order { one_by_one, at_once };

// Called with each as it ends, never for two at a time; at once: on that verification's thread.
using OnEnd = std::function<void(std::string const& attachment, Result<VfReport>)>;

// With at_once, no tests begin before all verifications are ready or have given up, and each report
// names the others.
void verify_all(std::vector<OneVerification> const& all, Order order, OnEnd const& on_end);

// A verification against a responder that another machine serves, with no vfmgrd on either side:
// run and nonce are created here, and nothing is configured. Blocking; one thread.

struct ServedTest {
    ResponderTarget responder;
    std::optional<IpAddress> address;  // of this machine; absent: the one towards the responder
    Profile profile = Profile::default_;
};

// Returns the responder's verdict, in which the path is unknown.
[[nodiscard]] Result<VfReport> verify_served(ServedTest const& test,
                                             std::vector<verify::Measurement> const& measured,
                                             verify::GuestSession::OnTest on_test = {});

}  // namespace vfmgr::guest
