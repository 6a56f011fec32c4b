// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/sender.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/receiver.hpp"
#include "vfmgr/proof/echo.hpp"
#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint32_t usual_mtu = 1500;
constexpr int room_wait_ms = 10'000;

// Below, `options.local` is set: the address of the control connection.

bool is_v4(SendOptions const& options) {
    return options.to.family == IpAddress::Family::v4;
}

Error no_sender(SendOptions const& options, char const* call, int error_number) {
    return {Problem::kernel_refused,
            fmt::format("can't open a UDP socket from {} to {}", to_string(*options.local),
                        to_string(options.to)),
            fmt::format("check the route: ip route get {}", to_string(options.to)),
            {errno_cause(call, error_number)}};
}

// DO rather than PROBE: respects the MTU that the path has reported, and fails here.
int forbid_fragments(int fd, SendOptions const& options) {
    if (is_v4(options)) {
        int const discover = IP_PMTUDISC_DO;
        return ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    }
    int const discover = IPV6_PMTUDISC_DO;
    return ::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof discover);
}

// Returns the MTU for a connected socket; 0 when the kernel does not report it.
std::uint32_t path_mtu(int fd, SendOptions const& options) {
    int mtu = 0;
    socklen_t length = sizeof mtu;
    int const failed = is_v4(options) ? ::getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length)
                                      : ::getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length);
    return failed != 0 || mtu < 0 ? 0 : static_cast<std::uint32_t>(mtu);
}

// The sender's end of a stream over a UDP socket. Never fragmented.
class UdpSender final : public Sender {
  public:
    static Result<std::unique_ptr<Sender>> open(SendOptions const& options, std::uint64_t run) {
        FileDescriptor fd(
            ::socket(is_v4(options) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (!fd) return fail(no_sender(options, "socket", errno));
        auto const local = SocketAddress::of(*options.local, 0);
        if (::bind(fd.get(), local.get(), local.length) != 0)
            return fail(no_sender(options, "bind", errno));
        if (forbid_fragments(fd.get(), options) != 0)
            return fail(no_sender(options, "setsockopt IP_MTU_DISCOVER", errno));
        auto const bytes = options.packet_bytes.value_or(
            static_cast<std::uint32_t>(verify::full_datagram_bytes(usual_mtu, options.to.family)));
        auto made = std::make_unique<UdpSender>(std::move(fd), options, bytes, run);
        // Any port will do: the MTU is the path's.
        VFMGR_CHECK(made->connect(default_port));
        auto const mtu = path_mtu(made->socket_.get(), options);
        if (mtu != 0 && bytes > verify::full_datagram_bytes(mtu, options.to.family))
            return fail(made->too_long(mtu));
        return made;
    }

    UdpSender(FileDescriptor socket, SendOptions const& options, std::uint32_t packet_bytes,
              std::uint64_t run)
        : Sender(packet_bytes),
          socket_(std::move(socket)),
          options_(options),
          run_(run),
          memory_(std::size_t{packet_bytes} * options.chunk),
          sges_(options.chunk),
          messages_(options.chunk) {
        for (std::uint64_t i = 0; i < options.chunk; ++i) {
            prepare_packet(packet(i), run);
            sges_[i] = {packet(i).data(), packet(i).size()};
        }
    }

    Result<void> aim(Acceptance const& receiver) override { return connect(*receiver.udp_port); }

    Result<void> send(std::uint64_t first, std::uint64_t count) override {
        for (std::uint64_t i = 0; i < count; ++i) {
            number_packet(packet(i), run_, first + i);
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

    std::uint64_t filtered() const override { return filtered_; }

  private:
    std::span<std::byte> packet(std::uint64_t index) {
        return std::span(memory_).subspan(index * packet_bytes(), packet_bytes());
    }

    Result<void> connect(std::uint16_t port) {
        auto const to = SocketAddress::of(options_.to, port);
        if (::connect(socket_.get(), to.get(), to.length) != 0)
            return fail(no_sender(options_, "connect", errno));
        return {};
    }

    // Waits, since a link may be paused or a queue full.
    Result<void> await_room() const {
        pollfd writable{socket_.get(), POLLOUT, 0};
        if (::poll(&writable, 1, room_wait_ms) != 0) return {};
        return fail(Problem::timed_out,
                    fmt::format("nothing could be sent to {} for {} s", to_string(options_.to),
                                room_wait_ms / 1000),
                    "check whether the link is down or paused: ip link; ethtool -S NETDEV");
    }

    Error too_long(std::uint32_t mtu) const {
        auto const most = verify::full_datagram_bytes(mtu, options_.to.family);
        return {Problem::unsupported,
                fmt::format("packets of {} bytes do not fit the path to {}: its MTU of {} leaves "
                            "{} bytes, and packets are not fragmented",
                            packet_bytes(), to_string(options_.to), mtu, most),
                fmt::format("send --packet-bytes {}, or raise the MTU on the whole path", most)};
    }

    Error refused(int error_number) const {
        if (error_number == EMSGSIZE)
            if (auto const mtu = path_mtu(socket_.get(), options_); mtu != 0) return too_long(mtu);
        if (error_number == ECONNREFUSED)
            return {
                Problem::unavailable,
                fmt::format("{} refuses packets to its UDP port (ICMP)", to_string(options_.to)),
                "let the port through that machine's firewall: nft list ruleset",
                {errno_cause("sendmmsg", error_number)}};
        return no_sender(options_, "sendmmsg", error_number);
    }

    FileDescriptor socket_;
    SendOptions const options_;
    std::uint64_t const run_;
    std::uint64_t filtered_ = 0;
    std::vector<std::byte> memory_;  // for one chunk
    std::vector<iovec> sges_;
    std::vector<mmsghdr> messages_;
};

// In flight while the next one is prepared.
constexpr std::uint32_t chunks_kept = 4;
constexpr std::chrono::seconds chunk_wait{10};

// The sender's end of a stream over unreliable datagrams: a chunk is one chain of requests, of
// which only the last has a completion.
class UdSender final : public Sender {
  public:
    static Result<std::unique_ptr<Sender>> open(SendOptions const& options, std::uint64_t run) {
        VFMGR_TRY(auto endpoint,
                  verify::open_endpoint({*options.local, {}}, verify::endpoint_wait));
        auto const packet_bytes = options.packet_bytes.value_or(endpoint.path_mtu);
        VFMGR_CHECK(check_ud_packet(endpoint, packet_bytes));
        auto const slots = options.chunk * chunks_kept;
        VFMGR_TRY(auto memory,
                  verify::RegisteredMemory::make(endpoint.pd.get(),
                                                 Ring::stride(packet_bytes) * slots, 0, "packets"));
        verify::QueuePairOptions const size{verify::Transport::ud, slots, 0};
        VFMGR_TRY(auto pair, verify::QueuePair::make(endpoint, size, 0));
        return std::make_unique<UdSender>(std::move(endpoint), std::move(memory), std::move(pair),
                                          options, packet_bytes, run);
    }

    UdSender(verify::Endpoint endpoint, verify::RegisteredMemory memory, verify::QueuePair pair,
             SendOptions const& options, std::uint32_t packet_bytes, std::uint64_t run)
        : Sender(packet_bytes),
          endpoint_(std::move(endpoint)),
          memory_(std::move(memory)),
          pair_(std::move(pair)),
          slots_({memory_.bytes(), memory_.local_key()}, packet_bytes, options.chunk * chunks_kept),
          run_(run),
          requests_(options.chunk),
          sges_(options.chunk) {
        for (std::uint32_t i = 0; i < slots_.count(); ++i)
            prepare_packet(slots_.slot(i).bytes, run_);
    }
    ~UdSender() override { pair_.shut(std::chrono::steady_clock::now() + verify::drain_wait); }

    std::optional<QueuePairEnd> end() const override { return pair_.end(); }

    Result<void> aim(Acceptance const& receiver) override {
        return pair_.connect(endpoint_, *receiver.pair);
    }

    Result<void> send(std::uint64_t first, std::uint64_t count) override {
        if (outstanding_ == chunks_kept) VFMGR_CHECK(await_chunk());
        auto const slot = next_chunk_ % chunks_kept * requests_.size();
        for (std::uint64_t i = 0; i < count; ++i) {
            auto const packet = slots_.slot(slot + i);
            number_packet(packet.bytes, run_, first + i);
            sges_[i] = {reinterpret_cast<std::uint64_t>(packet.bytes.data()), packet_bytes(),
                        packet.key};
            auto& request = requests_[i];
            request = {};
            request.wr_id = next_chunk_;
            request.opcode = IBV_WR_SEND;
            request.sg_list = &sges_[i];
            request.num_sge = 1;
            if (i + 1 == count) request.send_flags = IBV_SEND_SIGNALED;
            request.next = i + 1 == count ? nullptr : &requests_[i + 1];
            pair_.address(request);
        }
        VFMGR_CHECK(pair_.post(requests_.front()));
        ++next_chunk_;
        ++outstanding_;
        return {};
    }

    Result<void> flush() override {
        while (outstanding_ > 0) VFMGR_CHECK(await_chunk());
        return {};
    }

  private:
    Result<void> await_chunk() {
        VFMGR_TRY(auto const found,
                  verify::await(pair_.completions(), room_,
                                std::chrono::steady_clock::now() + chunk_wait, "a chunk"));
        outstanding_ -= std::min<std::uint64_t>(outstanding_, found.size());
        return {};
    }

    // Destroyed from the last to the first.
    verify::Endpoint endpoint_;
    verify::RegisteredMemory memory_;
    verify::QueuePair pair_;

    Ring slots_;  // for several chunks
    std::uint64_t run_;
    std::uint64_t next_chunk_ = 0;
    std::uint64_t outstanding_ = 0;      // chunks
    std::vector<ibv_send_wr> requests_;  // of one chunk
    std::vector<ibv_sge> sges_;
    std::array<ibv_wc, 16> room_{};
};

}  // namespace

Result<std::unique_ptr<Sender>> Sender::open(SendOptions options, IpAddress const& local,
                                             std::uint64_t run) {
    options.local = local;
    return options.over == Over::ud ? UdSender::open(options, run) : UdpSender::open(options, run);
}

}  // namespace vfmgr::stream
