// SPDX-License-Identifier: Apache-2.0
// Transfers between both ends over an in-process device: by DC where both have it, by RC with the
// reason where one does not. The device's counters show which way the bytes went.
#include "vfmgr/proof/transfer.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "tests/fakes/verbs/fabric.hpp"
#include "vfmgr/proof/host/host_transfers.hpp"

namespace vfmgr::verify {
namespace {

using fakes::fabric;
using std::chrono::milliseconds;
using testing::HasSubstr;
using Steady = std::chrono::steady_clock;

// The sizes of each run, once each.
constexpr std::uint64_t bytes_of_a_round = 64 + 4096 + 65536 + (1 << 20);

// As it comes through the guest plane.
template <class T>
Result<T> sent(T const& value) {
    return from_json_text<T>(to_json_text(value));
}

struct Transfers : testing::Test {
    IpAddress const host_address = *IpAddress::parse("10.0.0.1");
    IpAddress const guest_address = *IpAddress::parse("10.0.0.2");
    Result<Mlx5> at_host = fakes::mlx5(), at_guest = fakes::mlx5();
    std::function<void(StreamRequest&)> meddle = [](StreamRequest&) {};
    std::unique_ptr<StreamEnd> stream;
    StreamFacts facts;
    std::size_t asked = 0;
    std::uint8_t dscp = 0;  // the network's

    void SetUp() override { fakes::plug_in({host_address.gid(), guest_address.gid()}); }
    void TearDown() override {
        stream.reset();
        EXPECT_EQ(fakes::alive(), 0U) << "something was not destroyed, or before its time";
        EXPECT_EQ(fabric().overflows, 0U);
        EXPECT_EQ(fabric().abandoned, 0U);
    }

    Result<StreamOffer> open(StreamRequest request) {
        ++asked;
        meddle(request);
        SessionPermit permit;
        permit.host_address = host_address;
        permit.peer_address = guest_address;
        permit.dscp = dscp;
        VFMGR_TRY(auto const arrived, sent(request));
        VFMGR_TRY(stream, open_transfers(permit, arrived, {}, at_host));
        return sent(stream->offer());
    }
    StreamHost host() {
        return {[this](StreamRequest const& request) { return open(request); },
                [this](std::string const&) {
                    facts = stream->stop();
                    stream.reset();
                }};
    }
    TestResult run(milliseconds limit = milliseconds(10'000)) {
        auto const endpoint = open_endpoint({guest_address, "", dscp}, milliseconds(0));
        if (!endpoint) return measured_failure("transfer", endpoint.error()).result;
        Load load;
        load.window = milliseconds(20);
        return measured("transfer",
                        transfer(host(), *endpoint, load, Steady::now() + limit, at_guest))
            .result;
    }
};

struct OverRc {
    char const* name;
    std::function<void(Transfers&)> change;
    char const* reason;
};
void PrintTo(OverRc const& row, std::ostream* out) {
    *out << row.name;
}

struct TransfersWithoutDc : Transfers, testing::WithParamInterface<OverRc> {};

TEST_F(Transfers, GoOverDcWhereBothEndsHaveIt) {
    auto const result = run();
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_EQ(result.detail, "over DC");
    // A round writes twice and reads twice; one more read came before DC was promised.
    EXPECT_EQ(static_cast<double>(fabric().dc_writes), result.figures.at("orders") / 2);
    EXPECT_EQ(static_cast<double>(fabric().dc_reads), result.figures.at("orders") / 2 + 1);
    EXPECT_EQ(fabric().rc_writes + fabric().rc_reads, 0U);
    EXPECT_GE(facts.bytes_kept, bytes_of_a_round);
    EXPECT_EQ(facts.error, "");
}

TEST_F(Transfers, OverDcGoInTheNetworksClassOfTraffic) {
    dscp = 26;
    auto const result = run();
    EXPECT_EQ(result.detail, "over DC");
    EXPECT_THAT(fabric().classes, testing::ElementsAre(std::pair(26U << 2U, 3U)));
}

TEST_P(TransfersWithoutDc, GoOverRcAndSayWhy) {
    GetParam().change(*this);
    auto const result = run();
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_THAT(result.detail, HasSubstr(std::string("over RC: ") + GetParam().reason));
    EXPECT_EQ(static_cast<double>(fabric().rc_writes), result.figures.at("orders") / 2);
    EXPECT_EQ(static_cast<double>(fabric().rc_reads), result.figures.at("orders") / 2);
    EXPECT_EQ(fabric().dc_writes + fabric().dc_reads, 0U);
    EXPECT_GE(facts.bytes_kept, bytes_of_a_round);
}

constexpr char const* retries_exceeded =
    "on the host, the first RDMA read over DC failed with \"transport retry counter exceeded\"";

INSTANTIATE_TEST_SUITE_P(
    Why, TransfersWithoutDc,
    testing::Values(
        OverRc{"guest_without_library",
               [](Transfers& all) { all.at_guest = open_mlx5("libmlx5-of-nobody.so.1"); },
               "libmlx5-of-nobody.so.1 can't be opened (dlopen: libmlx5-of-nobody.so.1: cannot "
               "open shared object file"},
        OverRc{"guest_with_an_old_library",
               [](Transfers& all) { all.at_guest = open_mlx5("libibverbs.so.1"); },
               "libibverbs.so.1 has no mlx5dv_is_supported"},
        OverRc{"another_makers_device", [](Transfers&) { fabric().is_mlx5 = false; },
               "mlx5_7 has no DC: it is not an mlx5 device"},
        OverRc{"software_device", [](Transfers&) { fabric().vendor_id = 0xffffff; },
               "mlx5_7 has no DC: it is not an mlx5 device"},
        OverRc{"guest_without_targets", [](Transfers&) { fabric().refuse_target = EOPNOTSUPP; },
               "mlx5_7: the DC target can't be created (mlx5dv_create_qp: EOPNOTSUPP, Operation "
               "not supported)"},
        OverRc{"host_without_initiators", [](Transfers&) { fabric().refuse_initiator = EINVAL; },
               "on the host, mlx5_7: the DC initiator can't be created (mlx5dv_create_qp: EINVAL, "
               "Invalid argument)"},
        OverRc{"host_without_library",
               [](Transfers& all) { all.at_host = open_mlx5("libmlx5-of-nobody.so.1"); },
               "on the host, libmlx5-of-nobody.so.1 can't be opened"},
        OverRc{"dc_that_reaches_nothing", [](Transfers&) { fabric().loses_dc = true; },
               retries_exceeded},
        OverRc{
            "another_targets_key",
            [](Transfers& all) { all.meddle = [](StreamRequest& request) { ++request.dct->key; }; },
            retries_exceeded},
        OverRc{"another_targets_number",
               [](Transfers& all) {
                   all.meddle = [](StreamRequest& request) { ++request.dct->qp_num; };
               },
               retries_exceeded}),
    [](auto const& row) { return std::string(row.param.name); });

TEST_F(Transfers, AskAHostThatKnowsNoDcAgain) {
    StreamHost old = host();
    old.open = [this](StreamRequest const& request) -> Result<StreamOffer> {
        if (!request.dct) return open(request);
        ++asked;
        return fail(Problem::invalid_request, "/dct is not known here", "");
    };
    auto const endpoint = open_endpoint({guest_address, ""}, milliseconds(0));
    ASSERT_TRUE(endpoint);
    auto const result =
        transfer(old, *endpoint, {}, Steady::now() + milliseconds(10'000), at_guest).value().result;
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_EQ(result.detail, "over RC: the host's version has no DC");
    EXPECT_EQ(asked, 2U);
    EXPECT_GT(fabric().rc_writes, 0U);
}

TEST_F(Transfers, AHostThatSaysNothingOfDcWasNotAsked) {
    meddle = [](StreamRequest& request) { request.dct.reset(); };
    auto const result = run();
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("not what the guest requested"));
    EXPECT_EQ(result.remedy, "use the same version on VM and host");
}

TEST_F(Transfers, FindOverDcWhatIsWrongInMemory) {
    fabric().spoils_dc = true;
    auto const result = run();
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("bytes differ"));
    EXPECT_THAT(result.detail, HasSubstr(", over DC"));
}

// The guest's target receives no announcement, so the host's write never ends.
TEST_F(Transfers, EndWhileAWriteOverDcHangs) {
    fabric().no_receives = true;
    auto const start = Steady::now();
    auto const result = run(milliseconds(100));
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("before the deadline"));
    EXPECT_LT(Steady::now() - start, std::chrono::seconds(3));
    EXPECT_EQ(facts.messages, 0U);
}

TEST_F(Transfers, GoToTheVfsGidOnly) {
    meddle = [](StreamRequest& request) {
        request.pairs.front().gid = gid_hex(IpAddress::parse("10.0.0.9")->gid());
    };
    auto const result = run();
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("the GID of the VF's address 10.0.0.2"));
}

}  // namespace
}  // namespace vfmgr::verify
