// SPDX-License-Identifier: Apache-2.0
// Queue pairs, and how their requests are executed: for RC, and for DC once they are posted.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr::fakes {
namespace {

using Guard = std::lock_guard<std::mutex>;

std::byte* bytes_at(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(address);
}

// Checks that the MR is in the PD of the pair that uses it, covers all bytes and has that access.
bool may_use(Pair const& pair, std::uint32_t key, std::uint64_t address, std::uint64_t length,
             int access) {
    return std::ranges::any_of(objects().regions, [&](Region const& each) {
        auto const begin = reinterpret_cast<std::uint64_t>(each.verbs.addr);
        return each.verbs.rkey == key && each.verbs.pd == pair.verbs.qp_base.pd &&
               address >= begin && length <= each.verbs.length &&
               address - begin <= each.verbs.length - length && (each.access & access) == access;
    });
}

bool has_gid(Pair const& pair, ibv_gid const& gid) {
    auto const& fabric = objects().fabric;
    if (!fabric.ports.empty())
        return std::ranges::equal(fabric.ports.at(pair.port - 1U).gid, gid.raw);
    return std::ranges::equal(fabric.gids.at(pair.gid_index).raw, gid.raw);
}

// Returns the receiving pair; null when the request arrives nowhere.
Pair* other_end(Pair const& from, Request const& request) {
    auto const& fabric = objects().fabric;
    if (from.dc && fabric.loses_dc) return nullptr;
    for (auto& each : objects().pairs) {
        auto const& base = each.verbs.qp_base;
        if (base.state != IBV_QPS_RTR && base.state != IBV_QPS_RTS) continue;
        if (!from.dc && !each.dc && base.qp_num == from.peer &&
            is_from_peer(from, from.address, each))
            return &each;
        if (!from.dc || each.dc != MLX5DV_DCTYPE_DCT || base.qp_num != request.target) continue;
        auto const to = std::ranges::find_if(
            objects().addresses, [&](Address const& one) { return &one.verbs == request.to; });
        bool const there = to != objects().addresses.end() && to->attributes.is_global &&
                           has_gid(each, to->attributes.grh.dgid) &&
                           passes(from, to->attributes, each);
        if (there && each.key == request.key) return &each;
    }
    return nullptr;
}

std::deque<Receive>& receives_of(Pair& pair) {
    for (auto& each : objects().receives)
        if (&each.verbs == pair.verbs.qp_base.srq) return each.posted;
    return pair.posted;
}

ibv_wc outcome(Pair const& pair, std::uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode) {
    ibv_wc completion{};
    completion.wr_id = id;
    completion.status = status;
    completion.opcode = opcode;
    completion.qp_num = pair.verbs.qp_base.qp_num;
    return completion;
}

void end(Pair& from, Request const& request, ibv_wc_status status) {
    auto opcode = IBV_WC_SEND;
    if (request.opcode == IBV_WR_RDMA_READ) opcode = IBV_WC_RDMA_READ;
    if (request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        opcode = IBV_WC_RDMA_WRITE;
    complete(from.verbs.qp_base.send_cq, outcome(from, request.id, status, opcode));
    if (status == IBV_WC_SUCCESS || status == IBV_WC_WR_FLUSH_ERR) return;
    from.verbs.qp_base.state = IBV_QPS_ERR;
    flush(from);
}

// Runs at the receiving end: delivers a send's bytes, or the announcement of a write.
bool arrive(Pair& to, Request const& request) {
    auto& posted = receives_of(to);
    if (posted.empty()) return false;
    auto const taken = posted.front();
    posted.pop_front();
    bool const sent = request.opcode == IBV_WR_SEND;
    auto done =
        outcome(to, taken.id, IBV_WC_SUCCESS, sent ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
    done.byte_len = request.local->length;
    done.imm_data = request.immediate.value_or(0);
    auto const length = std::min(taken.into.length, request.local->length);
    if (sent) std::memcpy(bytes_at(taken.into.addr), bytes_at(request.local->addr), length);
    if (sent && objects().fabric.spoils == request.opcode && length > 8)
        bytes_at(taken.into.addr)[8] ^= std::byte{1};
    complete(to.verbs.qp_base.recv_cq, done);
    return true;
}

// Applies a one-sided request to the memory of the receiving end.
ibv_wc_status move_bytes(Pair& from, Pair const& to, Request const& request) {
    auto& fabric = objects().fabric;
    bool const reads = request.opcode == IBV_WR_RDMA_READ;
    int const remote = reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    auto const length = request.local->length;
    if ((to.access & remote) == 0 ||
        !may_use(to, request.remote_key, request.remote_address, length, remote))
        return IBV_WC_REM_ACCESS_ERR;
    if (!may_use(from, request.local->lkey, request.local->addr, length,
                 reads ? IBV_ACCESS_LOCAL_WRITE : 0))
        return IBV_WC_LOC_PROT_ERR;
    auto* const here = bytes_at(request.local->addr);
    auto* const there = bytes_at(request.remote_address);
    std::memcpy(reads ? here : there, reads ? there : here, length);
    if (from.dc)
        ++(reads ? fabric.dc_reads : fabric.dc_writes);
    else
        ++(reads ? fabric.rc_reads : fabric.rc_writes);
    bool const spoils = from.dc ? !reads && fabric.spoils_dc : fabric.spoils == request.opcode;
    if (spoils && length > 8) (reads ? here : there)[8] ^= std::byte{1};
    return IBV_WC_SUCCESS;
}

}  // namespace

Pair* pair_of(ibv_qp const* pair) {
    for (auto& each : objects().pairs)
        if (&each.verbs.qp_base == pair) return &each;
    return nullptr;
}

void perform(Pair& from, Request const& request) {
    if (from.verbs.qp_base.state == IBV_QPS_ERR) return end(from, request, IBV_WC_WR_FLUSH_ERR);
    if (from.verbs.qp_base.qp_type == IBV_QPT_UD) {
        send_datagram(from, request);
        return end(from, request, IBV_WC_SUCCESS);
    }
    auto* const to = other_end(from, request);
    if (!to) return end(from, request, IBV_WC_RETRY_EXC_ERR);
    if (request.opcode != IBV_WR_SEND) {
        auto const status = move_bytes(from, *to, request);
        if (status != IBV_WC_SUCCESS || !request.immediate) return end(from, request, status);
    }
    // Receiver not ready, and retried without end: rnr_retry is 7.
    if (!arrive(*to, request)) return from.held.push_back(request);
    end(from, request, IBV_WC_SUCCESS);
}

void perform_held() {
    for (auto& pair : objects().pairs)
        for (auto const& request : std::exchange(pair.held, {})) perform(pair, request);
}

void flush(Pair& pair) {
    for (auto const& request : std::exchange(pair.held, {}))
        end(pair, request, IBV_WC_WR_FLUSH_ERR);
    for (auto const& receive : std::exchange(pair.posted, {}))
        complete(pair.verbs.qp_base.recv_cq,
                 outcome(pair, receive.id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV));
}

int post_send(ibv_qp* verbs, ibv_send_wr* first, ibv_send_wr** bad) {
    Guard const lock(objects().mutex);
    auto* const pair = pair_of(verbs);
    *bad = first;
    // DC has its own path: each request needs an address.
    if (!pair || pair->dc) return EINVAL;
    if (verbs->state != IBV_QPS_RTS && verbs->state != IBV_QPS_ERR) return EINVAL;
    for (auto* one = first; one; one = one->next) {
        Request request;
        request.id = one->wr_id;
        request.opcode = one->opcode;
        request.local = one->num_sge > 0 ? *one->sg_list : ibv_sge{};
        if (verbs->qp_type == IBV_QPT_UD) {
            request.to = one->wr.ud.ah;
            request.target = one->wr.ud.remote_qpn;
            request.key = one->wr.ud.remote_qkey;
        } else {
            request.remote_key = one->wr.rdma.rkey;
            request.remote_address = one->wr.rdma.remote_addr;
        }
        if (one->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) request.immediate = one->imm_data;
        perform(*pair, request);
    }
    return 0;
}

int post_receive(ibv_qp* verbs, ibv_recv_wr* first, ibv_recv_wr** bad) {
    Guard const lock(objects().mutex);
    auto* const pair = pair_of(verbs);
    *bad = first;
    if (!pair || verbs->srq) return EINVAL;
    for (auto* one = first; one; one = one->next)
        pair->posted.push_back({one->wr_id, one->num_sge > 0 ? *one->sg_list : ibv_sge{}});
    if (verbs->state == IBV_QPS_ERR) flush(*pair);
    perform_held();
    return 0;
}

}  // namespace vfmgr::fakes

namespace fakes = vfmgr::fakes;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* expected) {
    fakes::Guard const lock(fakes::objects().mutex);
    auto& base = fakes::objects().pairs.emplace_back().verbs.qp_base;
    base.context = domain->context;
    base.pd = domain;
    base.send_cq = expected->send_cq;
    base.recv_cq = expected->recv_cq;
    base.qp_type = expected->qp_type;
    base.qp_num = ++fakes::objects().next_number;
    return &base;
}

int ibv_query_qp(ibv_qp* verbs, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
    fakes::Guard const lock(fakes::objects().mutex);
    auto const* const pair = fakes::pair_of(verbs);
    if (!pair) return EINVAL;
    *attributes = {};
    attributes->qp_state = verbs->state;
    attributes->dest_qp_num = pair->peer;
    attributes->ah_attr = pair->address;
    return 0;
}

int ibv_destroy_qp(ibv_qp* verbs) {
    fakes::Guard const lock(fakes::objects().mutex);
    if (auto const* const pair = fakes::pair_of(verbs))
        fakes::objects().fabric.abandoned += pair->held.size();
    std::erase_if(fakes::objects().pairs,
                  [&](auto const& each) { return &each.verbs.qp_base == verbs; });
    return 0;
}

}  // extern "C"
