// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/dc.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "api/os/library.hpp"
#include "api/os/random.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::verify {

Result<Mlx5> open_mlx5(std::string const& library) {
    VFMGR_TRY(
        auto opened,
        Library::open(library, "",
                      "install it: ibverbs-providers on Debian and Ubuntu, libibverbs on RHEL"));
    Mlx5 const mlx5{opened.need("mlx5dv_is_supported"), opened.need("mlx5dv_create_qp"),
                    opened.need("mlx5dv_qp_ex_from_ibv_qp_ex")};
    if (opened.missing().empty()) return mlx5;
    return fail(Problem::unsupported, fmt::format("{} has no {}", library, opened.missing()),
                "install rdma-core 24 or newer");
}

Result<Mlx5> const& mlx5_here() {
    static auto const opened = open_mlx5();
    return opened;
}

namespace {

// 4.096 us * 2^14 = 67 ms, or up to four times that, with seven retries: a request that reaches no
// target ends after two seconds. Only SoftRoCE needs longer, and it has no DC.
constexpr std::uint8_t dc_timeout = 14;
constexpr std::uint8_t dc_retries = 7;                    // for receiver-not-ready: without limit
constexpr std::uint64_t dc_last = ~std::uint64_t{0} - 1;  // QueuePair::shut() uses the next one

Result<void> modify_dc(ibv_qp* pair, ibv_qp_attr& attributes, int mask, char const* what) {
    return verbs_result(pair->context, fmt::format("{} can't be made ready", what), "ibv_modify_qp",
                        ibv_modify_qp(pair, &attributes, mask | IBV_QP_STATE));
}

Result<VerbsPair> make_dc_pair(Mlx5 const& mlx5, ibv_pd* pd, ibv_qp_init_attr_ex& expected,
                               mlx5dv_dc_init_attr const& dc, char const* what) {
    expected.qp_type = IBV_QPT_DRIVER;
    expected.pd = pd;
    expected.comp_mask |= IBV_QP_INIT_ATTR_PD;
    mlx5dv_qp_init_attr own{};
    own.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
    own.dc_init_attr = dc;
    VerbsPair pair(mlx5.mlx5dv_create_qp(pd->context, &expected, &own));
    if (pair) return pair;
    return fail(verbs_error(pd->context, fmt::format("the {} can't be created", what),
                            "mlx5dv_create_qp", errno));
}

}  // namespace

Result<void> require_dc(Result<Mlx5> const& mlx5, Endpoint const& endpoint) {
    bool const is_mlx5 =
        !endpoint.software && mlx5 && mlx5->mlx5dv_is_supported(endpoint.context->device);
    if (is_mlx5) return {};
    if (!endpoint.software && !mlx5) return fail(mlx5.error());
    return fail(Problem::unsupported,
                fmt::format("{} has no DC: it is not an mlx5 device", endpoint.device),
                "attach a VF of a ConnectX-4 or newer");
}

std::string reason_of(Error const& error) {
    auto text = error.detail;
    for (auto const& cause : error.causes)
        text += fmt::format(" ({}: {}{}{})", cause.call, cause.code,
                            cause.code.empty() || cause.text.empty() ? "" : ", ", cause.text);
    return text;
}

// --- the target -----------------------------------------------------------------------------

Result<DcTarget> DcTarget::make(Result<Mlx5> const& mlx5, Endpoint const& endpoint,
                                std::shared_ptr<CompletionQueue> queue) {
    VFMGR_CHECK(require_dc(mlx5, endpoint));
    ibv_srq_init_attr announcements{};
    announcements.attr.max_wr = 2;
    announcements.attr.max_sge = 1;
    auto* const pd = endpoint.pd.get();
    VerbsReceives receives(ibv_create_srq(pd, &announcements));
    if (!receives)
        return fail(verbs_error(pd->context,
                                "the shared receive queue of the DC target can't be created",
                                "ibv_create_srq", errno));
    ibv_qp_init_attr_ex expected{};
    expected.send_cq = queue->get();
    expected.recv_cq = queue->get();
    expected.srq = receives.get();
    mlx5dv_dc_init_attr dc{};
    dc.dc_type = MLX5DV_DCTYPE_DCT;
    dc.dct_access_key = random_number();
    VFMGR_TRY(auto pair, make_dc_pair(*mlx5, pd, expected, dc, "DC target"));
    DcTarget target(std::move(queue), std::move(receives), std::move(pair), dc.dct_access_key);
    VFMGR_CHECK(target.make_ready(endpoint));
    return target;
}

// The target gets its number in the transition to RTR, its last state.
Result<void> DcTarget::make_ready(Endpoint const& endpoint) {
    ibv_qp_attr start{};
    start.qp_state = IBV_QPS_INIT;
    start.pkey_index = endpoint.pkey_index();
    start.port_num = endpoint.number;
    start.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    VFMGR_CHECK(modify_dc(pair_.get(), start, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                          "the DC target"));
    ibv_qp_attr ready{};
    ready.qp_state = IBV_QPS_RTR;
    ready.min_rnr_timer = rnr_timer_640_us;
    VFMGR_TRY(ready.path_mtu, mtu_of_bytes(endpoint.path_mtu));
    // Each request names the initiator to answer; this address holds the path of the answer.
    VFMGR_TRY(ready.ah_attr, address_of(endpoint, end_of(endpoint)));
    VFMGR_CHECK(modify_dc(pair_.get(), ready, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER,
                          "the DC target"));
    end_.qp_num = pair_->qp_num;
    return {};
}

Result<void> DcTarget::receive(std::uint64_t id) {
    ibv_recv_wr request{};
    request.wr_id = id;
    ibv_recv_wr* bad = nullptr;
    return verbs_result(pair_->context, "a receive can't be posted", "ibv_post_srq_recv",
                        ibv_post_srq_recv(receives_.get(), &request, &bad));
}

// --- the initiator --------------------------------------------------------------------------

Result<DcInitiator> DcInitiator::make(Result<Mlx5> const& mlx5, Endpoint const& endpoint,
                                      QueuePairEnd const& peer, DcTargetEnd const& target,
                                      std::shared_ptr<CompletionQueue> queue) {
    VFMGR_CHECK(require_dc(mlx5, endpoint));
    ibv_qp_init_attr_ex expected{};
    expected.send_cq = queue->get();
    expected.recv_cq = queue->get();
    expected.cap.max_send_wr = 2;  // one request, and the one that shut() posts
    expected.cap.max_send_sge = 1;
    expected.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    expected.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ;
    mlx5dv_dc_init_attr dc{};
    dc.dc_type = MLX5DV_DCTYPE_DCI;
    VFMGR_TRY(auto pair, make_dc_pair(*mlx5, endpoint.pd.get(), expected, dc, "DC initiator"));
    VFMGR_TRY(auto address, make_address(endpoint, peer));
    DcInitiator initiator(std::move(queue), std::move(pair), std::move(address), target);
    initiator.requests_ = ibv_qp_to_qp_ex(initiator.pair_.get());
    initiator.addressed_ = mlx5->mlx5dv_qp_ex_from_ibv_qp_ex(initiator.requests_);
    VFMGR_CHECK(initiator.make_ready(endpoint));
    return initiator;
}

// No access flags, so a peer can't access anything. Each request carries its own address, and older
// kernels accept none here.
Result<void> DcInitiator::make_ready(Endpoint const& endpoint) {
    constexpr auto what = "the DC initiator";
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.pkey_index = endpoint.pkey_index();
    attributes.port_num = endpoint.number;
    VFMGR_CHECK(modify_dc(pair_.get(), attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT, what));
    attributes.qp_state = IBV_QPS_RTR;
    VFMGR_TRY(attributes.path_mtu, mtu_of_bytes(endpoint.path_mtu));
    VFMGR_CHECK(modify_dc(pair_.get(), attributes, IBV_QP_PATH_MTU, what));
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = dc_timeout;
    attributes.retry_cnt = dc_retries;
    attributes.rnr_retry = dc_retries;
    attributes.max_rd_atomic = 1;  // one read at a time; RC's limit does not apply to DC
    return modify_dc(pair_.get(), attributes,
                     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC,
                     what);
}

Result<void> DcInitiator::transfer(std::uint64_t id, TransferDirection direction,
                                   RemoteTransfer const& what) {
    ibv_wr_start(requests_);
    requests_->wr_id = id;
    requests_->wr_flags = IBV_SEND_SIGNALED;
    if (direction == TransferDirection::read)
        ibv_wr_rdma_read(requests_, what.key, what.address);
    else
        ibv_wr_rdma_write_imm(requests_, what.key, what.address, htonl(what.notify.value_or(0)));
    auto const local = what.local.bytes;
    ibv_wr_set_sge(requests_, what.local.key, reinterpret_cast<std::uint64_t>(local.data()),
                   static_cast<std::uint32_t>(local.size()));
    mlx5dv_wr_set_dc_addr(addressed_, address_.get(), target_.qp_num, target_.key);
    return verbs_result(pair_->context, "a request can't be posted", "ibv_wr_complete",
                        ibv_wr_complete(requests_));
}

void DcInitiator::shut(Deadline deadline) {
    ibv_qp_attr failed{};
    failed.qp_state = IBV_QPS_ERR;
    if (ibv_modify_qp(pair_.get(), &failed, IBV_QP_STATE) != 0) return;  // the device has gone
    // This read is flushed after everything that was posted before.
    if (transfer(dc_last, TransferDirection::read, {})) queue_->drain(dc_last, 1, deadline);
}

}  // namespace vfmgr::verify
