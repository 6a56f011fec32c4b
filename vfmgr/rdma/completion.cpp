// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/completion.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>

#include "api/os/descriptor.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::verify {
namespace {

bool ends_all_work(ibv_event_type event) {
    return event == IBV_EVENT_DEVICE_FATAL || event == IBV_EVENT_CQ_ERR ||
           event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_QP_REQ_ERR ||
           event == IBV_EVENT_QP_ACCESS_ERR;
}

}  // namespace

Error completion_error(ibv_wc const& completion, std::string_view what) {
    std::string vendor;
    if (completion.vendor_err != 0)
        vendor = fmt::format(", vendor code 0x{:x}", completion.vendor_err);
    return {Problem::kernel_refused,
            fmt::format("{} failed with \"{}\" (status {}{})", what,
                        ibv_wc_status_str(completion.status),
                        static_cast<unsigned>(completion.status), vendor),
            remedy_of(completion_fault(completion.status, completion.vendor_err))};
}

Result<void> check_completions(std::span<ibv_wc const> completions, std::string_view what) {
    for (auto const& completion : completions)
        if (completion.status != IBV_WC_SUCCESS) return fail(completion_error(completion, what));
    return {};
}

Result<void> check_async(ibv_context* context) {
    pollfd readable{context->async_fd, POLLIN, 0};
    while (::poll(&readable, 1, 0) > 0) {
        if ((readable.revents & POLLIN) == 0)
            return fail(verbs_error(context, "the device is gone", "poll", ENODEV));
        ibv_async_event event{};
        if (ibv_get_async_event(context, &event) != 0)
            return fail(verbs_error(context, "the device is gone", "ibv_get_async_event", errno));
        auto const type = event.event_type;
        ibv_ack_async_event(&event);
        if (ends_all_work(type))
            return fail(
                Problem::kernel_refused,
                fmt::format("{} reported \"{}\"", context->device->name, ibv_event_type_str(type)),
                "check that the VF is still plugged in: lspci; dmesg | tail");
    }
    return {};
}

Result<CompletionQueue> CompletionQueue::make(ibv_context* context, int entries) {
    VerbsChannel channel(ibv_create_comp_channel(context));
    if (!channel)
        return fail(verbs_error(context, "the completion channel can't be created",
                                "ibv_create_comp_channel", errno));
    if (::fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return fail(
            verbs_error(context, "the completion channel can't be created", "fcntl", errno));
    VerbsQueue queue(ibv_create_cq(context, entries, nullptr, channel.get(), 0));
    if (!queue)
        return fail(verbs_error(
            context, fmt::format("a completion queue of {} entries can't be created", entries),
            "ibv_create_cq", errno));
    return CompletionQueue(std::move(channel), std::move(queue));
}

Result<std::span<ibv_wc>> CompletionQueue::poll(std::span<ibv_wc> room) {
    int const count = ibv_poll_cq(queue_.get(), static_cast<int>(room.size()), room.data());
    if (count < 0)
        return fail(verbs_error(channel_->context, "the completion queue can't be polled",
                                "ibv_poll_cq", EIO));
    return room.first(static_cast<std::size_t>(count));
}

Result<std::span<ibv_wc>> CompletionQueue::wait(std::span<ibv_wc> room, Deadline deadline,
                                                unsigned polls) {
    Spin spin;
    for (unsigned i = 0; i < polls; ++i) {
        VFMGR_TRY(auto const found, poll(room));
        if (!found.empty()) return found;
        if (!spin.again(deadline)) break;
    }
    while (true) {
        VFMGR_CHECK(arm());
        VFMGR_TRY(auto const found, poll(room));
        if (!found.empty()) return found;
        VFMGR_CHECK(block(deadline));
    }
}

void CompletionQueue::drain(std::uint64_t id, unsigned count, Deadline deadline) {
    std::array<ibv_wc, 32> room{};
    unsigned device_events = 0;  // the caller itself may cause each of these
    while (count > 0 && device_events < 8) {
        auto const found = wait(room, deadline);
        if (!found && found.error().problem == Problem::timed_out) return;
        if (!found) ++device_events;
        if (!found) continue;
        for (auto const& completion : *found)
            if (completion.wr_id == id && count > 0) --count;
    }
}

Result<void> CompletionQueue::block(Deadline deadline) {
    std::array const fds{channel_->fd, channel_->context->async_fd};
    VFMGR_TRY(auto const readiness, await_readable(fds, deadline));
    if (readiness == Readiness::deadline_passed)
        return fail(Problem::timed_out,
                    fmt::format("{} completed nothing before the deadline",
                                channel_->context->device->name),
                    "check the link on both sides; if the VM has one CPU, give it another");
    take_events();
    return check_async(channel_->context);
}

Result<void> CompletionQueue::arm() {
    return verbs_result(channel_->context, "the completion queue can't be armed",
                        "ibv_req_notify_cq", ibv_req_notify_cq(queue_.get(), 0));
}

void CompletionQueue::take_events() {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}

}  // namespace vfmgr::verify
