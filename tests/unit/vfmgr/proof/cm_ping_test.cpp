// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/measure.hpp"

#include <gmock/gmock.h>

namespace vfmgr::verify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct CmPing : testing::Test {
    std::vector<StreamRequest> asked;
    std::vector<std::string> closed;
    std::vector<CmOptions> pinged;
    std::optional<Error> refusal;

    Measured run(CmPinger const& pinger) {
        StreamHost const host{[this](StreamRequest const& request) -> Result<StreamOffer> {
                                  asked.push_back(request);
                                  if (refusal) return fail(*refusal);
                                  StreamOffer offer;
                                  offer.stream = "5d0a";
                                  offer.cm_port = 45671;
                                  return offer;
                              },
                              [this](std::string const& stream) { closed.push_back(stream); }};
        Measurement what{"cm_ping", StreamKind::cm_ping, cm_ping_by(pinger)};
        what.load.size.message_bytes = 100;
        GuestAttachment const attachment{};
        std::string const ifname = "enp7s0";
        Endpoint const endpoint{};
        return measure(what, {attachment, ifname, endpoint, host, {}});
    }
    Measured run() {
        return run([this](CmOptions const& options, Deadline) {
            pinged.push_back(options);
            return measured("by another name");
        });
    }
};

TEST_F(CmPing, PingsThePortOfTheOfferAndClosesTheStream) {
    auto const made = run();
    EXPECT_EQ(made.result.verdict, Verdict::pass);
    EXPECT_EQ(made.result.name, "cm_ping");
    EXPECT_THAT(asked, ElementsAre(StreamRequest{StreamKind::cm_ping, 100, 1, {}, {}}));
    ASSERT_EQ(pinged.size(), 1U);
    EXPECT_EQ(pinged[0].cm_port, 45671);
    EXPECT_EQ(pinged[0].own.ifname, "enp7s0");
    EXPECT_THAT(closed, ElementsAre("5d0a"));
}

TEST_F(CmPing, AHostThatCanNotServeItIsNoFaultOfTheVf) {
    for (auto const problem : {Problem::unsupported, Problem::unavailable}) {
        refusal =
            Error{problem, "RDMA CM is not available; load its kernel module: modprobe rdma_ucm",
                  "see there"};
        auto const made = run();
        EXPECT_EQ(made.result.verdict, Verdict::skip);
        EXPECT_EQ(made.result.detail, refusal->detail);
        EXPECT_EQ(made.result.remedy, "see there");
    }
    EXPECT_THAT(pinged, IsEmpty());
    EXPECT_THAT(closed, IsEmpty());
}

TEST_F(CmPing, AnotherRefusalFails) {
    refusal = Error{Problem::not_found, "there is no session", "start a new run"};
    EXPECT_EQ(run().result.verdict, Verdict::fail);
}

}  // namespace
}  // namespace vfmgr::verify
