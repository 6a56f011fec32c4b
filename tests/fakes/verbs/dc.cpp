// SPDX-License-Identifier: Apache-2.0
// mlx5's DC, as libmlx5 and the kernel's driver accept it.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr::fakes {
namespace {

using Held = std::lock_guard<std::mutex>;
constexpr std::uint32_t no_number_yet = 0xffffff;  // a target has none before it is ready

Pair& pair_of(ibv_qp_ex* verbs) {
    return *fakes::pair_of(&verbs->qp_base);
}

void start(ibv_qp_ex* verbs) {
    objects().mutex.lock();
    pair_of(verbs).begun = Request();
}

void begin(ibv_qp_ex* verbs, ibv_wr_opcode opcode, std::uint32_t key, std::uint64_t address) {
    auto& request = *pair_of(verbs).begun;
    request.id = verbs->wr_id;
    request.opcode = opcode;
    request.remote_key = key;
    request.remote_address = address;
}

void read(ibv_qp_ex* verbs, std::uint32_t key, std::uint64_t address) {
    begin(verbs, IBV_WR_RDMA_READ, key, address);
}

void write_announced(ibv_qp_ex* verbs, std::uint32_t key, std::uint64_t address,
                     std::uint32_t immediate) {
    begin(verbs, IBV_WR_RDMA_WRITE_WITH_IMM, key, address);
    pair_of(verbs).begun->immediate = immediate;
}

void set_local(ibv_qp_ex* verbs, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
    pair_of(verbs).begun->local = ibv_sge{address, length, key};
}

void set_target(mlx5dv_qp_ex* addressed, ibv_ah* to, std::uint32_t target, std::uint64_t key) {
    for (auto& each : objects().pairs) {
        if (&each.addressed != addressed) continue;
        each.begun->to = to;
        each.begun->target = target;
        each.begun->key = key;
    }
}

// Posts only what send_ops_flags named, on a pair that is ready, with address and bytes.
int finish(ibv_qp_ex* verbs) {
    Held const lock(objects().mutex, std::adopt_lock);
    auto& pair = pair_of(verbs);
    auto const request = std::exchange(pair.begun, {});
    auto const operation = request->opcode == IBV_WR_RDMA_READ ? IBV_QP_EX_WITH_RDMA_READ
                                                               : IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    auto const state = verbs->qp_base.state;
    bool const complete = request->opcode && request->local && request->to;
    if (!complete || (pair.operations & operation) == 0 || verbs->wr_flags != IBV_SEND_SIGNALED ||
        (state != IBV_QPS_RTS && state != IBV_QPS_ERR))
        return EINVAL;
    perform(pair, *request);
    return 0;
}

bool is_supported(ibv_device*) {
    return objects().fabric.is_mlx5;
}

ibv_qp* refuse(int error_number) {
    errno = error_number;
    return nullptr;
}

ibv_qp* create(ibv_context* context, ibv_qp_init_attr_ex* expected, mlx5dv_qp_init_attr* own) {
    Held const lock(objects().mutex);
    auto const type = own->dc_init_attr.dc_type;
    bool const target = type == MLX5DV_DCTYPE_DCT;
    auto const refused =
        target ? objects().fabric.refuse_target : objects().fabric.refuse_initiator;
    if (refused != 0) return refuse(refused);
    auto const mask = std::uint32_t{IBV_QP_INIT_ATTR_PD} |
                      (target ? 0U : std::uint32_t{IBV_QP_INIT_ATTR_SEND_OPS_FLAGS});
    if (expected->qp_type != IBV_QPT_DRIVER || own->comp_mask != MLX5DV_QP_INIT_ATTR_MASK_DC ||
        expected->comp_mask != mask || !expected->pd || !expected->send_cq || !expected->recv_cq ||
        target != (expected->srq != nullptr) || (!target && expected->cap.max_send_wr == 0))
        return refuse(EINVAL);
    auto& made = objects().pairs.emplace_back();
    made.dc = type;
    if (target) made.key = own->dc_init_attr.dct_access_key;
    made.operations = target ? 0 : expected->send_ops_flags;
    auto& base = made.verbs.qp_base;
    base.context = context;
    base.pd = expected->pd;
    base.send_cq = expected->send_cq;
    base.recv_cq = expected->recv_cq;
    base.srq = expected->srq;
    base.qp_type = IBV_QPT_DRIVER;
    base.qp_num = target ? no_number_yet : ++objects().next_number;
    made.verbs.wr_start = start;
    made.verbs.wr_rdma_read = read;
    made.verbs.wr_rdma_write_imm = write_announced;
    made.verbs.wr_set_sge = set_local;
    made.verbs.wr_complete = finish;
    made.addressed.wr_set_dc_addr = set_target;
    return &base;
}

mlx5dv_qp_ex* extended(ibv_qp_ex* verbs) {
    return &pair_of(verbs).addressed;
}

bool exactly(int mask, int required, int optional = 0) {
    return (mask & required) == required && (mask & ~(required | optional)) == 0;
}

int modify_target(Pair& pair, ibv_qp_attr const& to, int mask) {
    auto& base = pair.verbs.qp_base;
    if (base.state == IBV_QPS_RESET && to.qp_state == IBV_QPS_INIT) {
        if (!exactly(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT) ||
            !is_port(to.port_num))
            return EINVAL;
        pair.port = to.port_num;
        pair.pkey_index = to.pkey_index;
        pair.access = static_cast<int>(to.qp_access_flags);
    } else if (base.state == IBV_QPS_INIT && to.qp_state == IBV_QPS_RTR) {
        if (!exactly(mask, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU))
            return EINVAL;
        pair.gid_index = to.ah_attr.grh.sgid_index;
        note_class(to.ah_attr);
        base.qp_num = ++objects().next_number;
    } else {
        return EINVAL;  // to ERR as well
    }
    base.state = to.qp_state;
    return 0;
}

int modify_initiator(Pair& pair, ibv_qp_attr const& to, int mask) {
    auto& base = pair.verbs.qp_base;
    bool good = false;
    if (base.state == IBV_QPS_RESET && to.qp_state == IBV_QPS_INIT)
        good = exactly(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    else if (base.state == IBV_QPS_INIT && to.qp_state == IBV_QPS_RTR)
        good = exactly(mask, IBV_QP_STATE | IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX);
    else if (base.state == IBV_QPS_RTR && to.qp_state == IBV_QPS_RTS)
        good = exactly(mask,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN,
                       IBV_QP_MIN_RNR_TIMER);
    else if (base.state != IBV_QPS_RESET && to.qp_state == IBV_QPS_ERR)
        good = exactly(mask, IBV_QP_STATE);
    if (!good) return EINVAL;
    if (to.qp_state == IBV_QPS_INIT) {
        pair.port = to.port_num;
        pair.pkey_index = to.pkey_index;
    }
    base.state = to.qp_state;
    if (base.state == IBV_QPS_ERR) flush(pair);
    return 0;
}

// The kernel's qp_state_table of ib_modify_qp_is_ok(), for the states passed through here.
struct Change {
    ibv_qp_state from, to;
    int required, optional;
};
constexpr std::array changes_of_connected{
    Change{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    Change{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    Change{IBV_QPS_INIT, IBV_QPS_RTR,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    Change{IBV_QPS_RTR, IBV_QPS_RTS,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC,
           IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
               IBV_QP_PATH_MIG_STATE},
    Change{IBV_QPS_RTS, IBV_QPS_RTS, 0,
           IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
               IBV_QP_MIN_RNR_TIMER}};
constexpr std::array changes_of_datagrams{
    Change{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    Change{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    Change{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    Change{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    Change{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY}};

bool is_taken(ibv_qp const& pair, ibv_qp_state to, int mask) {
    if (to == IBV_QPS_RESET) return exactly(mask, IBV_QP_STATE);
    if (to == IBV_QPS_ERR) return pair.state != IBV_QPS_RESET && exactly(mask, IBV_QP_STATE);
    std::span<Change const> const changes = pair.qp_type == IBV_QPT_UD
                                                ? std::span<Change const>(changes_of_datagrams)
                                                : std::span<Change const>(changes_of_connected);
    return std::ranges::any_of(changes, [&](Change const& each) {
        return each.from == pair.state && each.to == to &&
               exactly(mask, IBV_QP_STATE | each.required, each.optional);
    });
}

int modify_connected(Pair& pair, ibv_qp_attr const& to, int mask) {
    if (!is_taken(pair.verbs.qp_base, to.qp_state, mask)) return EINVAL;
    if ((mask & IBV_QP_PORT) != 0 && !is_port(to.port_num)) return EINVAL;
    if ((mask & IBV_QP_PORT) != 0) pair.port = to.port_num;
    if ((mask & IBV_QP_PKEY_INDEX) != 0) pair.pkey_index = to.pkey_index;
    if ((mask & IBV_QP_QKEY) != 0) pair.q_key = to.qkey;
    if ((mask & IBV_QP_TIMEOUT) != 0) pair.timeout = to.timeout;
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0) pair.access = static_cast<int>(to.qp_access_flags);
    if ((mask & IBV_QP_DEST_QPN) != 0) pair.peer = to.dest_qp_num;
    if ((mask & IBV_QP_AV) != 0) {
        pair.address = to.ah_attr;
        note_class(to.ah_attr);
        pair.gid_index = to.ah_attr.grh.sgid_index;
    }
    pair.verbs.qp_base.state = to.qp_state;
    if (to.qp_state == IBV_QPS_ERR) flush(pair);
    return 0;
}

}  // namespace

verify::Mlx5 mlx5() {
    return {is_supported, create, extended};
}

}  // namespace vfmgr::fakes

namespace fakes = vfmgr::fakes;

extern "C" {

int ibv_modify_qp(ibv_qp* verbs, ibv_qp_attr* to, int mask) {
    fakes::Held const lock(fakes::objects().mutex);
    auto* const pair = fakes::pair_of(static_cast<ibv_qp const*>(verbs));
    if (!pair || (mask & IBV_QP_STATE) == 0) return EINVAL;
    if (pair->dc == MLX5DV_DCTYPE_DCT) return fakes::modify_target(*pair, *to, mask);
    if (pair->dc) return fakes::modify_initiator(*pair, *to, mask);
    return fakes::modify_connected(*pair, *to, mask);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* verbs) {
    fakes::Held const lock(fakes::objects().mutex);
    auto* const pair = fakes::pair_of(static_cast<ibv_qp const*>(verbs));
    return pair && pair->operations != 0 ? &pair->verbs : nullptr;
}

}  // extern "C"
