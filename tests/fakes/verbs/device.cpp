// SPDX-License-Identifier: Apache-2.0
// The device, its PDs, MRs and CQs.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr::fakes {

Objects& objects() {
    static Objects all;
    return all;
}

Fabric& fabric() {
    return objects().fabric;
}

void plug_in(std::vector<std::array<std::uint8_t, 16>> const& gids) {
    objects().fabric = {};
    for (auto const& gid : gids) {
        ibv_gid one{};
        std::memcpy(one.raw, gid.data(), gid.size());
        objects().fabric.gids.push_back(one);
    }
}

void plug_in_subnet(std::vector<SubnetPort> ports) {
    objects().fabric = {};
    objects().fabric.ports = std::move(ports);
}

std::size_t alive() {
    auto const& all = objects();
    return all.contexts.size() + all.domains.size() + all.channels.size() + all.queues.size() +
           all.receives.size() + all.regions.size() + all.addresses.size() + all.pairs.size();
}

void complete(ibv_cq* queue, ibv_wc const& completion) {
    auto& all = objects();
    auto const found =
        std::ranges::find_if(all.queues, [&](Queue const& each) { return &each.verbs == queue; });
    if (found == all.queues.end()) return;
    if (std::cmp_greater_equal(found->done.size(), queue->cqe)) ++all.fabric.overflows;
    found->done.push_back(completion);
    if (!std::exchange(found->armed, false)) return;
    std::uint64_t const one = 1;
    if (::write(queue->channel->fd, &one, sizeof one) != sizeof one) std::abort();
}

namespace {

using Lock = std::lock_guard<std::mutex>;

template <class T, class V>
int destroy(std::list<T>& all, V const* verbs, bool in_use) {
    if (in_use) return EBUSY;
    auto const gone = std::erase_if(all, [&](T const& each) {
        return static_cast<void const*>(&each) == static_cast<void const*>(verbs);
    });
    return gone == 1 ? 0 : EINVAL;
}

int poll_queue(ibv_cq* queue, int room, ibv_wc* out) {
    Lock const lock(objects().mutex);
    for (auto& each : objects().queues) {
        if (&each.verbs != queue) continue;
        int taken = 0;
        for (; taken < room && !each.done.empty(); ++taken) {
            out[taken] = each.done.front();
            each.done.pop_front();
        }
        return taken;
    }
    return -1;
}

int arm_queue(ibv_cq* queue, int) {
    Lock const lock(objects().mutex);
    for (auto& each : objects().queues)
        if (&each.verbs == queue) each.armed = true;
    return 0;
}

int describe_port(ibv_context*, std::uint8_t number, ibv_port_attr* port, std::size_t) {
    *port = {};
    if (!is_port(number)) return EINVAL;
    port->state = IBV_PORT_ACTIVE;
    port->active_mtu = IBV_MTU_4096;
    port->link_layer = IBV_LINK_LAYER_ETHERNET;
    auto const& ports = objects().fabric.ports;
    if (ports.empty()) return 0;
    auto const& own = ports[number - 1U];
    port->state = own.state;
    port->link_layer = IBV_LINK_LAYER_INFINIBAND;
    port->lid = own.lid;
    port->sm_lid = 1;
    port->pkey_tbl_len = 8;
    if (own.grh_required) port->flags = IBV_QPF_GRH_REQUIRED;
    return 0;
}

int post_to_shared(ibv_srq* receives, ibv_recv_wr* first, ibv_recv_wr**) {
    Lock const lock(objects().mutex);
    for (auto& each : objects().receives) {
        if (&each.verbs != receives || objects().fabric.no_receives) continue;
        for (auto* one = first; one; one = one->next)
            each.posted.push_back({one->wr_id, one->num_sge > 0 ? *one->sg_list : ibv_sge{}});
    }
    perform_held();
    return 0;
}

ibv_device the_device{};

}  // namespace
}  // namespace vfmgr::fakes

namespace fakes = vfmgr::fakes;
using fakes::Lock;
using fakes::objects;

namespace vfmgr::fakes {
// pairs.cpp
int post_send(ibv_qp* pair, ibv_send_wr* first, ibv_send_wr** bad);
int post_receive(ibv_qp* pair, ibv_recv_wr* first, ibv_recv_wr** bad);
}  // namespace vfmgr::fakes

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
    bool const there = !fakes::fabric().gids.empty() || !fakes::fabric().ports.empty();
    if (count) *count = there ? 1 : 0;
    std::strcpy(fakes::the_device.name, "mlx5_7");
    return new ibv_device*[2]{there ? &fakes::the_device : nullptr, nullptr};
}

void ibv_free_device_list(ibv_device** list) {
    delete[] list;
}

ibv_context* ibv_open_device(ibv_device* device) {
    Lock const lock(objects().mutex);
    auto& made = objects().contexts.emplace_back();
    made.extended.sz = sizeof made.extended;
    made.extended.query_port = fakes::describe_port;
    auto& context = made.extended.context;
    context.device = device;
    context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context.async_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    context.ops.poll_cq = fakes::poll_queue;
    context.ops.req_notify_cq = fakes::arm_queue;
    context.ops.post_send = fakes::post_send;
    context.ops.post_recv = fakes::post_receive;
    context.ops.post_srq_recv = fakes::post_to_shared;
    return &context;
}

int ibv_close_device(ibv_context* context) {
    Lock const lock(objects().mutex);
    ::close(context->async_fd);
    std::erase_if(objects().contexts,
                  [&](fakes::Context const& each) { return &each.extended.context == context; });
    return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
    *attributes = {};
    attributes->node_guid = 1;
    attributes->vendor_id = fakes::fabric().vendor_id;
    attributes->phys_port_cnt =
        static_cast<std::uint8_t>(std::max<std::size_t>(fakes::fabric().ports.size(), 1));
    attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
    return 0;
}

ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t, std::uint32_t,
                             std::size_t) {
    auto const& ports = fakes::fabric().ports;
    for (std::uint32_t i = 0; i < ports.size(); ++i) {
        entries[i] = {{}, 0, i + 1, IBV_GID_TYPE_IB, 0};
        std::ranges::copy(ports[i].gid, entries[i].gid.raw);
    }
    if (!ports.empty()) return static_cast<ssize_t>(ports.size());
    auto const& gids = fakes::fabric().gids;
    for (std::uint32_t i = 0; i < gids.size(); ++i)
        entries[i] = {gids[i], i, 1, IBV_GID_TYPE_ROCE_V2, 1};
    return static_cast<ssize_t>(gids.size());
}

int ibv_query_pkey(ibv_context*, std::uint8_t number, int index, __be16* pkey) {
    auto const& ports = fakes::fabric().ports;
    if (number < 1 || number > ports.size() || index < 0) return -1;
    auto const& pkeys = ports[number - 1U].pkeys;
    auto const place = static_cast<std::size_t>(index);
    *pkey = htons(place < pkeys.size() ? pkeys[place] : std::uint16_t{0});
    return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    Lock const lock(objects().mutex);
    return &objects().domains.emplace_back(ibv_pd{context, 0});
}

int ibv_dealloc_pd(ibv_pd* domain) {
    Lock const lock(objects().mutex);
    auto const& all = objects();
    auto const in_it = [&](auto const& each) { return each.verbs.pd == domain; };
    bool const in_use =
        std::ranges::any_of(all.regions, in_it) || std::ranges::any_of(all.receives, in_it) ||
        std::ranges::any_of(all.addresses, in_it) ||
        std::ranges::any_of(all.pairs,
                            [&](auto const& each) { return each.verbs.qp_base.pd == domain; });
    return fakes::destroy(objects().domains, domain, in_use);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t,
                         unsigned access) {
    Lock const lock(objects().mutex);
    auto& made = objects().regions.emplace_back();
    made.access = static_cast<int>(access);
    auto const key = ++objects().next_number;
    made.verbs = {domain->context, domain, address, bytes, 0, key, key};
    return &made.verbs;
}

#undef ibv_reg_mr
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t bytes, int access) {
    return ibv_reg_mr_iova2(domain, address, bytes, 0, static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* region) {
    Lock const lock(objects().mutex);
    return fakes::destroy(objects().regions, region, false);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    Lock const lock(objects().mutex);
    auto& made = objects().channels.emplace_back();
    made.verbs = {context, ::eventfd(0, EFD_CLOEXEC), 0};
    return &made.verbs;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    Lock const lock(objects().mutex);
    bool const in_use = std::ranges::any_of(
        objects().queues, [&](auto const& each) { return each.verbs.channel == channel; });
    if (!in_use) ::close(channel->fd);
    return fakes::destroy(objects().channels, channel, in_use);
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
    Lock const lock(objects().mutex);
    auto& made = objects().queues.emplace_back();
    made.verbs.context = context;
    made.verbs.channel = channel;
    made.verbs.cqe = entries;
    for (auto& each : objects().channels)
        if (&each.verbs == channel) each.queue = &made.verbs;
    return &made.verbs;
}

int ibv_destroy_cq(ibv_cq* queue) {
    Lock const lock(objects().mutex);
    bool const in_use = std::ranges::any_of(objects().pairs, [&](auto const& each) {
        return each.verbs.qp_base.send_cq == queue || each.verbs.qp_base.recv_cq == queue;
    });
    return fakes::destroy(objects().queues, queue, in_use);
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** context) {
    std::uint64_t events = 0;
    if (::read(channel->fd, &events, sizeof events) != sizeof events) return -1;
    Lock const lock(objects().mutex);
    for (auto const& each : objects().channels)
        if (&each.verbs == channel) *queue = each.queue;
    *context = nullptr;
    return 0;
}

void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr*) {
    Lock const lock(objects().mutex);
    auto& made = objects().receives.emplace_back();
    made.verbs.context = domain->context;
    made.verbs.pd = domain;
    return &made.verbs;
}

int ibv_destroy_srq(ibv_srq* receives) {
    Lock const lock(objects().mutex);
    bool const in_use = std::ranges::any_of(
        objects().pairs, [&](auto const& each) { return each.verbs.qp_base.srq == receives; });
    return fakes::destroy(objects().receives, receives, in_use);
}

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
    Lock const lock(objects().mutex);
    auto& made = objects().addresses.emplace_back();
    made.verbs.context = domain->context;
    made.verbs.pd = domain;
    made.attributes = *attributes;
    fakes::note_class(*attributes);
    return &made.verbs;
}

int ibv_destroy_ah(ibv_ah* address) {
    Lock const lock(objects().mutex);
    return fakes::destroy(objects().addresses, address, false);
}

}  // extern "C"
