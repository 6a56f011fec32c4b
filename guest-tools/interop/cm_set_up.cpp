// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/cm_set_up.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "guest-tools/verify/faults.hpp"

namespace vfmgr::interop {

Error cm_error(Problem problem, std::string detail, char const* call) {
    int const error_number = errno;
    auto const fault = verify::errno_fault(call, error_number);
    return {problem,
            std::move(detail),
            fault ? verify::remedy_of(*fault) : "check the kernel log: dmesg | tail",
            {errno_cause(call, error_number)}};
}

Result<CmChannel> make_cm_channel() {
    CmChannel channel(rdma_create_event_channel());
    if (!channel) {
        auto error =
            cm_error(Problem::unsupported, "RDMA CM is not available", "rdma_create_event_channel");
        error.remedy = "load its kernel module: modprobe rdma_ucm";
        return fail(std::move(error));
    }
    if (::fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0) return channel;
    return fail(cm_error(Problem::unsupported, "RDMA CM's event channel can't be set up", "fcntl"));
}

Result<CmId> make_cm_id(CmChannel const& channel) {
    rdma_cm_id* made = nullptr;
    if (rdma_create_id(channel.get(), &made, nullptr, RDMA_PS_TCP) == 0) return CmId(made);
    return fail(
        cm_error(Problem::unsupported, "RDMA CM can't create an endpoint", "rdma_create_id"));
}

Result<void> make_ready(CmId const& id, verify::QueuePair& pair) {
    for (auto const& [state, name] : {std::pair(IBV_QPS_RTR, "RTR"), {IBV_QPS_RTS, "RTS"}}) {
        ibv_qp_attr attributes{};
        attributes.qp_state = state;
        int mask = 0;
        if (rdma_init_qp_attr(id.get(), &attributes, &mask) != 0)
            return fail(cm_error(Problem::kernel_refused,
                                 "RDMA CM returned no attributes for the queue pair",
                                 "rdma_init_qp_attr"));
        VFMGR_CHECK(pair.modify(attributes, mask, name));
    }
    return {};
}

rdma_conn_param parameters_for(verify::QueuePair const& pair) {
    rdma_conn_param parameters{};
    parameters.responder_resources = 1;
    parameters.initiator_depth = 1;
    parameters.retry_count = 7;
    parameters.rnr_retry_count = 7;
    parameters.qp_num = pair.end().qp_num;
    return parameters;
}

}  // namespace vfmgr::interop
