// SPDX-License-Identifier: Apache-2.0
// Sends the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#include "guest-tools/traffic/sender.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>

#include "api/os/socket_address.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/receiver.hpp"
#include "vfmgr/proof/echo.hpp"
#include "vfmgr/proof/reachability.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint32_t usual_mtu = 1500;

}  // namespace

Result<Sender> Sender::open(Options const& options) {
    if (options.over == Over::ud) {
        VFMGR_TRY(auto ud, UdSender::open(
                               {options.local, options.packet_bytes, options.chunk, options.run}));
        auto const bytes = ud.packet_bytes();
        return Sender(Either(std::move(ud)), bytes);
    }
    auto const bytes = options.packet_bytes.value_or(
        static_cast<std::uint32_t>(verify::full_datagram_bytes(usual_mtu, options.to.family)));
    VFMGR_TRY(auto udp,
              UdpSender::open({options.local, options.to, bytes, options.chunk, options.run}));
    return Sender(Either(std::move(udp)), bytes);
}

std::optional<QueuePairEnd> Sender::end() const {
    if (auto const* const ud = std::get_if<UdSender>(&either_)) return ud->end();
    return std::nullopt;
}

Result<void> Sender::aim(Acceptance const& receiver) {
    if (auto* const ud = std::get_if<UdSender>(&either_)) return ud->aim(*receiver.pair);
    return std::get<UdpSender>(either_).aim(*receiver.udp_port);
}

Result<void> Sender::send(std::uint64_t first, std::uint64_t count) {
    return std::visit([&](auto& one) { return one.send(first, count); }, either_);
}

Result<void> Sender::flush() {
    auto* const ud = std::get_if<UdSender>(&either_);
    return ud != nullptr ? ud->flush() : Result<void>{};
}

std::uint64_t Sender::filtered() const {
    auto const* const udp = std::get_if<UdpSender>(&either_);
    return udp != nullptr ? udp->filtered() : 0;
}

namespace {

constexpr int room_wait_ms = 10'000;

bool is_v4(UdpSender::Options const& options) {
    return options.to.family == IpAddress::Family::v4;
}

Error no_sender(UdpSender::Options const& options, char const* call, int error_number) {
    return {Problem::kernel_refused,
            fmt::format("can't open a UDP socket from {} to {}", to_string(options.local),
                        to_string(options.to)),
            fmt::format("check the route: ip route get {}", to_string(options.to)),
            {errno_cause(call, error_number)}};
}

// DO rather than PROBE: respects the MTU that the path has reported, and fails here.
int forbid_fragments(int fd, UdpSender::Options const& options) {
    if (is_v4(options)) {
        int const discover = IP_PMTUDISC_DO;
        return ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    }
    int const discover = IPV6_PMTUDISC_DO;
    return ::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof discover);
}

// Returns the MTU for a connected socket; 0 when the kernel does not report it.
std::uint32_t path_mtu(int fd, UdpSender::Options const& options) {
    int mtu = 0;
    socklen_t length = sizeof mtu;
    int const failed = is_v4(options) ? ::getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length)
                                      : ::getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length);
    return failed != 0 || mtu < 0 ? 0 : static_cast<std::uint32_t>(mtu);
}

Error too_long(UdpSender::Options const& options, std::uint32_t mtu) {
    auto const most = verify::full_datagram_bytes(mtu, options.to.family);
    return {Problem::unsupported,
            fmt::format("packets of {} bytes do not fit the path to {}: its MTU of {} leaves {} "
                        "bytes, and packets are not fragmented",
                        options.packet_bytes, to_string(options.to), mtu, most),
            fmt::format("send --packet-bytes {}, or raise the MTU on the whole path", most)};
}

}  // namespace

Result<UdpSender> UdpSender::open(Options const& options) {
    FileDescriptor fd(::socket(is_v4(options) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) return fail(no_sender(options, "socket", errno));
    auto const local = SocketAddress::of(options.local, 0);
    if (::bind(fd.get(), local.get(), local.length) != 0)
        return fail(no_sender(options, "bind", errno));
    if (forbid_fragments(fd.get(), options) != 0)
        return fail(no_sender(options, "setsockopt IP_MTU_DISCOVER", errno));
    UdpSender made(std::move(fd), options);
    // Any port will do: the MTU is the path's.
    VFMGR_CHECK(made.aim(default_port));
    auto const mtu = path_mtu(made.socket_.get(), options);
    if (mtu != 0 && options.packet_bytes > verify::full_datagram_bytes(mtu, options.to.family))
        return fail(too_long(options, mtu));
    return made;
}

UdpSender::UdpSender(FileDescriptor socket, Options const& options)
    : socket_(std::move(socket)),
      options_(options),
      memory_(std::size_t{options.packet_bytes} * options.chunk),
      sges_(options.chunk),
      messages_(options.chunk) {
    for (std::uint64_t i = 0; i < options.chunk; ++i) {
        prepare_packet(packet(i), options.run);
        sges_[i] = {packet(i).data(), packet(i).size()};
    }
}

std::span<std::byte> UdpSender::packet(std::uint64_t index) {
    return std::span(memory_).subspan(index * options_.packet_bytes, options_.packet_bytes);
}

Result<void> UdpSender::aim(std::uint16_t port) {
    auto const to = SocketAddress::of(options_.to, port);
    if (::connect(socket_.get(), to.get(), to.length) != 0)
        return fail(no_sender(options_, "connect", errno));
    return {};
}

Result<void> UdpSender::send(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        number_packet(packet(i), options_.run, first + i);
        messages_[i] = {};
        messages_[i].msg_hdr.msg_iov = &sges_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
    for (std::uint64_t done = 0; done < count;) {
        int const put = ::sendmmsg(socket_.get(), &messages_[done],
                                   static_cast<unsigned>(count - done), MSG_DONTWAIT);
        if (put > 0) done += static_cast<std::uint64_t>(put);
        if (put > 0 || errno == EINTR) continue;
        if (errno == EPERM) {  // nftables dropped this packet: lost, but not by the network
            ++filtered_;
            ++done;
            continue;
        }
        if (errno != EAGAIN) return fail(refused(errno));
        VFMGR_CHECK(await_room());
    }
    return {};
}

// Waits, since a link may be paused or a queue full.
Result<void> UdpSender::await_room() const {
    pollfd writable{socket_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, room_wait_ms) != 0) return {};
    return fail(Problem::timed_out,
                fmt::format("nothing could be sent to {} for {} s", to_string(options_.to),
                            room_wait_ms / 1000),
                "check whether the link is down or paused: ip link; ethtool -S NETDEV");
}

Error UdpSender::refused(int error_number) const {
    if (error_number == EMSGSIZE)
        if (auto const mtu = path_mtu(socket_.get(), options_); mtu != 0)
            return too_long(options_, mtu);
    if (error_number == ECONNREFUSED)
        return {Problem::unavailable,
                fmt::format("{} refuses packets to its UDP port (ICMP)", to_string(options_.to)),
                "let the port through that machine's firewall: nft list ruleset",
                {errno_cause("sendmmsg", error_number)}};
    return no_sender(options_, "sendmmsg", error_number);
}

namespace {

// In flight while the next one is prepared.
constexpr std::uint32_t chunks_kept = 4;
constexpr std::chrono::seconds chunk_wait{10};

}  // namespace

Result<UdSender> UdSender::open(Options const& options) {
    VFMGR_TRY(auto endpoint, verify::open_endpoint({options.local, {}}, verify::endpoint_wait));
    auto const packet_bytes = options.packet_bytes.value_or(endpoint.path_mtu);
    VFMGR_CHECK(check_ud_packet(endpoint, packet_bytes));
    auto const slots = options.chunk * chunks_kept;
    VFMGR_TRY(auto memory,
              verify::RegisteredMemory::make(endpoint.pd.get(), Ring::stride(packet_bytes) * slots,
                                             0, "packets"));
    verify::QueuePairOptions const size{verify::Transport::ud, slots, 0};
    VFMGR_TRY(auto pair, verify::QueuePair::make(endpoint, size, 0));
    Ring const ring({memory.bytes(), memory.local_key()}, packet_bytes, slots);
    return UdSender(
        std::make_unique<Rdma>(Rdma{std::move(endpoint), std::move(memory), std::move(pair)}), ring,
        packet_bytes, options);
}

UdSender::UdSender(std::unique_ptr<Rdma> rdma, Ring slots, std::uint32_t packet_bytes,
                   Options const& options)
    : rdma_(std::move(rdma)),
      slots_(slots),
      packet_bytes_(packet_bytes),
      chunk_(options.chunk),
      run_(options.run),
      requests_(options.chunk),
      sges_(options.chunk) {
    for (std::uint32_t i = 0; i < slots_.count(); ++i) prepare_packet(slots_.slot(i).bytes, run_);
}

UdSender::~UdSender() {
    if (rdma_) rdma_->pair.shut(std::chrono::steady_clock::now() + verify::drain_wait);
}

Result<void> UdSender::aim(QueuePairEnd const& receiver) {
    return rdma_->pair.connect(rdma_->endpoint, receiver);
}

Result<void> UdSender::send(std::uint64_t first, std::uint64_t count) {
    if (outstanding_ == chunks_kept) VFMGR_CHECK(await_chunk());
    auto const slot = next_chunk_ % chunks_kept * chunk_;
    for (std::uint64_t i = 0; i < count; ++i) {
        auto const packet = slots_.slot(slot + i);
        number_packet(packet.bytes, run_, first + i);
        sges_[i] = {reinterpret_cast<std::uint64_t>(packet.bytes.data()), packet_bytes_,
                    packet.key};
        auto& request = requests_[i];
        request = {};
        request.wr_id = next_chunk_;
        request.opcode = IBV_WR_SEND;
        request.sg_list = &sges_[i];
        request.num_sge = 1;
        if (i + 1 == count) request.send_flags = IBV_SEND_SIGNALED;
        request.next = i + 1 == count ? nullptr : &requests_[i + 1];
        rdma_->pair.address(request);
    }
    VFMGR_CHECK(rdma_->pair.post(requests_.front()));
    ++next_chunk_;
    ++outstanding_;
    return {};
}

Result<void> UdSender::await_chunk() {
    VFMGR_TRY(auto const found,
              verify::await(rdma_->pair.completions(), room_,
                            std::chrono::steady_clock::now() + chunk_wait, "a chunk"));
    outstanding_ -= std::min<std::uint64_t>(outstanding_, found.size());
    return {};
}

Result<void> UdSender::flush() {
    while (outstanding_ > 0) VFMGR_CHECK(await_chunk());
    return {};
}

}  // namespace vfmgr::stream
