// SPDX-License-Identifier: Apache-2.0
// The in-process device takes a queue pair's attributes as the kernel does: those that a change of
// state needs, and no others (ib_modify_qp_is_ok(), qp_state_table).
#include <gmock/gmock.h>

#include "tests/fakes/verbs/fabric.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::verify {
namespace {

constexpr int state = IBV_QP_STATE;
constexpr int init_rc = state | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int init_ud = state | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int ready_rc = state | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int sending_rc = state | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int sending_ud = state | IBV_QP_SQ_PSN;

struct Way {
    ibv_qp_type type;
    std::vector<std::pair<ibv_qp_state, int>> changes;
};

struct FakeDevice : testing::Test {
    void SetUp() override {
        fakes::plug_in({{}});
        int count = 0;
        VerbsDevices const devices(ibv_get_device_list(&count));
        context.reset(ibv_open_device(devices.get()[0]));
        pd.reset(ibv_alloc_pd(context.get()));
        queue.reset(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
    }
    [[nodiscard]] VerbsPair pair_of(ibv_qp_type type) const {
        ibv_qp_init_attr expected{};
        expected.send_cq = expected.recv_cq = queue.get();
        expected.qp_type = type;
        return VerbsPair(ibv_create_qp(pd.get(), &expected));
    }
    static int change(VerbsPair const& pair, ibv_qp_state to, int mask) {
        ibv_qp_attr attributes{};
        attributes.qp_state = to;
        attributes.port_num = 1;
        return ibv_modify_qp(pair.get(), &attributes, mask);
    }
    // Goes up to that change, which is left to the caller.
    [[nodiscard]] VerbsPair before(Way const& way, std::size_t change_number) const {
        auto pair = pair_of(way.type);
        for (std::size_t n = 0; n < change_number; ++n)
            EXPECT_EQ(change(pair, way.changes[n].first, way.changes[n].second), 0) << n;
        return pair;
    }
    VerbsContext context;
    VerbsPd pd;
    VerbsQueue queue;
    std::vector<Way> const ways{
        {IBV_QPT_RC, {{IBV_QPS_INIT, init_rc}, {IBV_QPS_RTR, ready_rc}, {IBV_QPS_RTS, sending_rc}}},
        {IBV_QPT_UD, {{IBV_QPS_INIT, init_ud}, {IBV_QPS_RTR, state}, {IBV_QPS_RTS, sending_ud}}}};
};

TEST_F(FakeDevice, TakesEachChangeWithAllThatItNeeds) {
    for (auto const& way : ways) {
        auto const pair = before(way, way.changes.size());
        EXPECT_EQ(pair->state, IBV_QPS_RTS);
        EXPECT_EQ(change(pair, IBV_QPS_ERR, state), 0);
        EXPECT_EQ(change(pair, IBV_QPS_RESET, state), 0);
    }
}

TEST_F(FakeDevice, RefusesAChangeWithoutAnyOneOfThose) {
    for (auto const& way : ways)
        for (std::size_t n = 0; n < way.changes.size(); ++n)
            for (int bit = 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
                auto const& [to, mask] = way.changes[n];
                if ((mask & bit) == 0) continue;
                auto const pair = before(way, n);
                EXPECT_EQ(change(pair, to, mask & ~bit), EINVAL) << to << " without " << bit;
            }
}

TEST_F(FakeDevice, RefusesWhatAChangeDoesNotTake) {
    for (auto const& way : ways)
        for (std::size_t n = 0; n < way.changes.size(); ++n) {
            auto const& [to, mask] = way.changes[n];
            EXPECT_EQ(change(before(way, n), to, mask | IBV_QP_CAP), EINVAL) << to;
        }
    EXPECT_EQ(change(before(ways[0], 1), IBV_QPS_RTR, ready_rc | IBV_QP_TIMEOUT), EINVAL);
    EXPECT_EQ(change(before(ways[1], 1), IBV_QPS_RTR, state | IBV_QP_AV), EINVAL);
    EXPECT_EQ(change(before(ways[0], 2), IBV_QPS_ERR, state | IBV_QP_TIMEOUT), EINVAL);
}

TEST_F(FakeDevice, GoesThroughNoStateTwiceAndSkipsNone) {
    for (auto const& way : ways) {
        EXPECT_EQ(change(before(way, 0), IBV_QPS_RTR, way.changes[1].second), EINVAL);
        EXPECT_EQ(change(before(way, 1), IBV_QPS_RTS, way.changes[2].second), EINVAL);
        EXPECT_EQ(change(before(way, 2), IBV_QPS_INIT, way.changes[0].second), EINVAL);
        EXPECT_EQ(change(before(way, 0), IBV_QPS_ERR, state), EINVAL);
        auto const broken = before(way, 3);
        EXPECT_EQ(change(broken, IBV_QPS_ERR, state), 0);
        EXPECT_EQ(change(broken, IBV_QPS_RTS, way.changes[2].second), EINVAL);
    }
}

}  // namespace
}  // namespace vfmgr::verify
