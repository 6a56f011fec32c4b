// SPDX-License-Identifier: Apache-2.0
// What the host says of a guest on TCP that did not report.
#include "vfmgr/plan/silence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::Not;

AttachmentSpec silent_spec() {
    auto spec = ask();
    spec.guest_plane = GuestTransport::tcp;
    return spec;
}

VfCounters sent(std::uint64_t tx, std::uint64_t rx) {
    VfCounters counters;
    counters.tx_packets = tx;
    counters.rx_packets = rx;
    return counters;
}

class Silence : public testing::Test {
  protected:
    HostView view = host();
    DesiredState goal = with_attachment(desired(), host(), "aaaa0001", silent_spec());

    [[nodiscard]] std::string said(VfCounted const& counted) const {
        return silence_of(goal.attachments.at("aaaa0001"), counted, view, goal);
    }
};

TEST_F(Silence, TellsNothingSentFromNothingUseful) {
    EXPECT_THAT(said({sent(7, 3), sent(7, 5)}),
                HasSubstr("the VM sent nothing over this VF since the run began, and its VF "
                          "received 2"));
    EXPECT_THAT(said({sent(7, 3), sent(19, 3)}), HasSubstr("the VM sent 12 packets over this VF"));
    EXPECT_THAT(said({sent(7, 3), sent(4, 3)}), HasSubstr("sent 4 packets"))
        << "a reset cleared the counters";
    EXPECT_THAT(said({{}, sent(4, 3)}), HasSubstr("counts no packets"));
}

TEST_F(Silence, SaysHowFarTheEnrolmentCame) {
    EXPECT_THAT(said({}), HasSubstr("was never given an enrolment"));
    goal.guest_keys["aaaa0001"].token = GuestSecret{"t", {}};
    EXPECT_THAT(said({}), HasSubstr("has not used the token"));
    goal.guest_keys["aaaa0001"].keys = {GuestSecret{"k", {}}};
    EXPECT_THAT(said({}), HasSubstr("has a key"));
}

TEST_F(Silence, NamesWhatIsBrokenOnTheHost) {
    EXPECT_THAT(said({}), HasSubstr("the host's filter does not let it in"));
    auto& pf = view.kernel.pfs[pf_address];
    pf.info.carrier = false;
    pf.vfs[0].settings.link_state = LinkState::disable;
    pf.vfs[0].holders.clear();
    auto const text = said({});
    EXPECT_THAT(text, HasSubstr("has no carrier"));
    EXPECT_THAT(text, HasSubstr("link_state is disable"));
    EXPECT_THAT(text, HasSubstr("no process has the VF open"));
    pf.info.carrier = true;
    EXPECT_THAT(said({}), Not(HasSubstr("no carrier")));
}

}  // namespace
}  // namespace vfmgr
