// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/cm_pinger.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "vfmgr/proof/interop/child.hpp"
#include "vfmgr/proof/interop/rping.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/rdma/faults.hpp"

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

namespace {

constexpr char const* no_word_given = "-";

class CmStream final : public verify::StreamEnd {
  public:
    CmStream(std::unique_ptr<RpingProcess> server, std::uint32_t seconds)
        : StreamEnd(seconds), server_(std::move(server)) {
        offer_.cm_port = server_->port();
    }
    verify::StreamFacts stop() override { return {.messages = server_->stop().pings}; }

  private:
    std::unique_ptr<RpingProcess> const server_;
};

}  // namespace

std::string word_of(std::optional<Guid> const& guid) {
    return guid ? to_string(*guid) : no_word_given;
}

std::string word_of(std::optional<std::uint16_t> const& pkey) {
    return pkey ? std::to_string(*pkey) : no_word_given;
}

bool read_word(std::string const& word, std::optional<Guid>& guid) {
    if (word == no_word_given) return true;
    auto const read = Guid::parse(word);
    if (read) guid = *read;
    return read.has_value();
}

bool read_word(std::string const& word, std::optional<std::uint16_t>& pkey) {
    if (word == no_word_given) return true;
    auto const read = parse_digits(word, {10, 1, 5, 0xffff});
    if (read) pkey = static_cast<std::uint16_t>(*read);
    return read.has_value();
}

Result<void> check_choice(verify::Endpoint const& own, CmChoice const& choice) {
    if (choice.device != own.device)
        return fail(
            Problem::conflict,
            fmt::format("rdma_resolve_addr took device {}, not {}, which has the VF's address",
                        choice.device, own.device),
            "check for two devices with the same node GUID, or none: ibv_devinfo | grep -E "
            "'hca_id|node_guid'");
    auto const gid = std::to_array(choice.gid.raw);
    if (gid == own.gid) return {};
    return fail(Problem::conflict,
                fmt::format("rdma_resolve_addr took GID {}, not {}, which is the VF's",
                            verify::gid_text(gid), verify::gid_text(own.gid)),
                "check which interface has the VF's address: ip address; on InfiniBand it must be "
                "IPoIB's on the VF's port");
}

verify::OpenCmStream cm_streams(std::vector<std::string> program) {
    return
        [program = std::move(program)](
            verify::SessionPermit const& permit, StreamRequest const&,
            verify::ResponderLimits const& limits) -> Result<std::unique_ptr<verify::StreamEnd>> {
            VFMGR_CHECK(verify::require_rdma(permit));
            verify::NearNic const near(permit.host_netdev);  // the child inherits it
            Terms terms;
            terms.permit = permit;
            terms.until =
                std::chrono::steady_clock::now() + std::chrono::seconds(limits.stream_seconds_max);
            terms.cm_port = 0;
            VFMGR_TRY(auto server, RpingProcess::start(program, terms));
            return std::make_unique<CmStream>(std::move(server), limits.stream_seconds_max);
        };
}

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds report_time{1};  // after the deadline of the pings

std::vector<std::string> words_of_ping(verify::CmOptions const& options, Deadline deadline) {
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
    return {to_string(options.own.address),   options.own.ifname,
            std::to_string(options.own.dscp), to_string(options.host),
            std::to_string(options.cm_port),  std::to_string(options.message_bytes),
            std::to_string(options.pings),    std::to_string(std::max<long>(left.count(), 0)),
            word_of(options.own.port_guid),   word_of(options.own.pkey)};
}

Error no_word(bool in_time) {
    return {Problem::internal,
            in_time ? "the RDMA CM client ended without a result"
                    : "the RDMA CM client did not end in time",
            "check this machine's kernel log: dmesg | tail"};
}

verify::Measured ping_in_child(std::vector<std::string> program, verify::CmOptions const& options,
                               Deadline deadline) {
    for (auto& word : words_of_ping(options, deadline)) program.push_back(std::move(word));
    auto const child = Child::start(std::move(program), "the RDMA CM client");
    if (!child) return verify::measured_failure("cm_ping", child.error());
    auto const until = deadline + report_time;
    auto const message = (*child)->receive(until);
    if (!message) return verify::measured_failure("cm_ping", no_word(Steady::now() < until));
    auto result = from_json_text<TestResult>(*message);
    if (!result) return verify::measured_failure("cm_ping", result.error());
    return {std::move(*result)};
}

}  // namespace

verify::CmPinger cm_pinger(std::vector<std::string> program) {
    return [program = std::move(program)](verify::CmOptions const& options, Deadline deadline) {
        return ping_in_child(program, options, deadline);
    };
}

}  // namespace vfmgr::interop
