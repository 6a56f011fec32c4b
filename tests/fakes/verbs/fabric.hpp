// SPDX-License-Identifier: Apache-2.0
// An in-process RDMA device for both ends of a test: libibverbs' calls and libmlx5's calls for DC.
// It carries bytes from memory to memory, and refuses what the kernel's mlx5 driver refuses
// (ib_modify_qp_is_ok(), mlx5_ib_modify_dct(), modify_dci_qp_is_ok(), create_dct()): missing or
// excess attributes, states out of order, objects that others still need. On Ethernet it has one
// port with two addresses, the host's and the guest's; on InfiniBand a port for each of both, and a
// packet passes as the subnet, the ports and their partitions let it. A program that links it has
// no other RDMA device. Any thread.
#pragma once

#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "vfmgr/rdma/dc.hpp"

namespace vfmgr::fakes {

// An InfiniBand port, as the subnet manager left it.
struct SubnetPort {
    std::array<std::uint8_t, 16> gid{};
    std::uint16_t lid = 0;
    std::vector<std::uint16_t> pkeys{0xffff};
    bool grh_required = false;
    ibv_port_state state = IBV_PORT_ACTIVE;
};

// The device's properties, and what it did.
struct Fabric {
    std::vector<ibv_gid> gids;      // of port 1, by index
    std::vector<SubnetPort> ports;  // of an InfiniBand device; without them and gids there is none
    std::uint32_t vendor_id = 0x02c9;
    bool is_mlx5 = true;
    int refuse_target = 0, refuse_initiator = 0;  // errno of mlx5dv_create_qp
    bool loses_dc = false;                        // DC traffic arrives nowhere
    bool spoils_dc = false;                       // each write over DC has one bit flipped
    bool no_receives = false;               // for a shared receive queue: posted, and never used
    std::optional<ibv_wr_opcode> spoils{};  // each such request over RC has one bit flipped
    bool loses_datagrams = false;
    std::size_t with_grh = 0, without_grh = 0;  // InfiniBand's packets that arrived
    std::size_t dc_writes = 0, dc_reads = 0, rc_writes = 0, rc_reads = 0;
    std::size_t overflows = 0;  // of completion queues
    // Traffic class and service level of each route that a queue pair or an address got.
    std::set<std::pair<unsigned, unsigned>> classes;
    std::size_t abandoned = 0;  // requests in flight when their pair was destroyed
};
Fabric& fabric();
// Resets to a new device with these addresses.
void plug_in(std::vector<std::array<std::uint8_t, 16>> const& gids);
// Resets to a new InfiniBand device with these ports, from 1 on.
void plug_in_subnet(std::vector<SubnetPort> ports);
// Returns how many QPs, MRs, CQs, PDs and other objects are not destroyed yet.
std::size_t alive();

verify::Mlx5 mlx5();

// --- for the fake's own files ---------------------------------------------------------------

struct Receive {
    std::uint64_t id = 0;
    ibv_sge into{};
};
struct Request {
    std::uint64_t id = 0;
    std::optional<ibv_wr_opcode> opcode;
    std::optional<ibv_sge> local;
    std::uint32_t remote_key = 0;
    std::uint64_t remote_address = 0;
    std::optional<std::uint32_t> immediate;
    ibv_ah* to = nullptr;  // for DC and datagrams, and with it:
    std::uint32_t target = 0;
    std::uint64_t key = 0;
};
struct Channel {
    ibv_comp_channel verbs{};
    ibv_cq* queue = nullptr;
};
struct Queue {
    ibv_cq verbs{};
    std::deque<ibv_wc> done;
    bool armed = false;
};
struct Receives {
    ibv_srq verbs{};
    std::deque<Receive> posted;
};
struct Region {
    ibv_mr verbs{};
    int access = 0;
};
struct Address {
    ibv_ah verbs{};
    ibv_ah_attr attributes{};
};
struct Pair {
    ibv_qp_ex verbs{};
    mlx5dv_qp_ex addressed{};
    std::optional<mlx5dv_dc_type> dc;
    std::uint64_t key = 0;         // of a target
    std::uint64_t operations = 0;  // send_ops_flags
    int access = 0;
    std::uint32_t peer = 0;
    ibv_ah_attr address{};  // of a connected pair: the peer's
    std::uint8_t timeout = 0;
    std::uint8_t gid_index = 0;
    std::uint8_t port = 1;
    std::uint16_t pkey_index = 0;
    std::uint32_t q_key = 0;  // of datagrams
    std::deque<Receive> posted;
    std::deque<Request> held;  // until a receive is posted
    std::optional<Request> begun;
};
struct Context {
    verbs_context extended{};
    ibv_device device{};
};
struct Objects {
    std::mutex mutex;
    Fabric fabric;
    std::list<Context> contexts;
    std::list<ibv_pd> domains;
    std::list<Channel> channels;
    std::list<Queue> queues;
    std::list<Receives> receives;
    std::list<Region> regions;
    std::list<Address> addresses;
    std::list<Pair> pairs;
    std::uint32_t next_number = 0x100;
};
Objects& objects();

// Records a route's traffic class in the device.
inline void note_class(ibv_ah_attr const& route) {
    objects().fabric.classes.emplace(route.grh.traffic_class, route.sl);
}
// The device's ports are numbered from 1 on.
inline bool is_port(std::uint8_t number) {
    return number >= 1 && number <= std::max<std::size_t>(objects().fabric.ports.size(), 1);
}
// Returns the pair that a call names, or null.
Pair* pair_of(ibv_qp const* pair);
void complete(ibv_cq* queue, ibv_wc const& completion);
// subnet.cpp: whether a packet that goes that way arrives at the pair, which on Ethernet is for the
// caller to find out.
bool passes(Pair const& from, ibv_ah_attr const& way, Pair const& to);
// Whether the connected pair takes a packet that came that way: only its peer's.
bool is_from_peer(Pair const& from, ibv_ah_attr const& way, Pair const& to);
// Sends a datagram, which nobody misses if it is lost.
void send_datagram(Pair& from, Request const& request);
// Executes it, holds it, or ends it with an error, as the pair's state and the other end require.
void perform(Pair& from, Request const& request);
// Runs after a receive was posted.
void perform_held();
// Moves the pair to IBV_QPS_ERR: flushes what is outstanding.
void flush(Pair& pair);

}  // namespace vfmgr::fakes
