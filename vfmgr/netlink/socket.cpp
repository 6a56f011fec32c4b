// SPDX-License-Identifier: Apache-2.0
// Netlink messages: attributes, requests, and the socket that carries them. One thread for each
// socket.
#include "vfmgr/netlink/socket.hpp"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace vfmgr {
namespace {

constexpr std::size_t header_bytes = 4;
constexpr std::uint16_t type_mask = 0x3fff;  // NLA_TYPE_MASK without its C cast

std::size_t aligned(std::size_t size) {
    return (size + 3) & ~std::size_t{3};
}

}  // namespace

std::optional<IpAddress> ip_address_in(ByteView octets) {
    if (octets.size() != 4 && octets.size() != 16) return std::nullopt;
    IpAddress address;
    address.family = octets.size() == 4 ? IpAddress::Family::v4 : IpAddress::Family::v6;
    std::memcpy(address.octets.data(), octets.data(), octets.size());
    return address;
}

std::uint8_t family_of(IpAddress const& address) {
    return address.family == IpAddress::Family::v4 ? AF_INET : AF_INET6;
}

ByteView after(ByteView bytes, std::size_t size) {
    auto const start = aligned(size);
    return bytes.size() < start ? ByteView{} : bytes.subspan(start);
}

Attributes::Attributes(ByteView payload) {
    while (auto const header = front_object<nlattr>(payload)) {
        if (header->nla_len < header_bytes || header->nla_len > payload.size()) return;
        attributes_.push_back({static_cast<std::uint16_t>(header->nla_type & type_mask),
                               payload.subspan(header_bytes, header->nla_len - header_bytes)});
        payload = payload.subspan(std::min(payload.size(), aligned(header->nla_len)));
    }
}

std::optional<ByteView> Attributes::find(std::uint16_t type) const {
    for (auto const& attribute : attributes_)
        if (attribute.type == type) return attribute.value;
    return std::nullopt;
}

std::optional<std::string> Attributes::text(std::uint16_t type) const {
    auto const bytes = find(type);
    if (!bytes) return std::nullopt;
    std::string text;
    for (auto const byte : *bytes) {
        if (byte == std::byte{0}) break;
        text += static_cast<char>(byte);
    }
    return text;
}

Attributes Attributes::nested(std::uint16_t type) const {
    return Attributes(find(type).value_or(ByteView{}));
}

std::optional<MacAddress> Attributes::mac(std::uint16_t type) const {
    auto const bytes = find(type);
    if (!bytes || bytes->size() != sizeof(MacAddress::octets)) return std::nullopt;
    MacAddress mac;
    std::memcpy(mac.octets.data(), bytes->data(), bytes->size());
    return mac;
}

std::optional<Guid> Attributes::port_guid(std::uint16_t type) const {
    constexpr std::size_t ipoib_bytes = 20;
    auto const bytes = find(type);
    if (!bytes || bytes->size() != ipoib_bytes) return std::nullopt;
    Guid guid;
    for (auto const byte : bytes->last(sizeof guid.value))
        guid.value = guid.value << 8U | std::to_integer<std::uint64_t>(byte);
    return guid;
}

std::optional<IpAddress> Attributes::ip(std::uint16_t type) const {
    auto const bytes = find(type);
    return bytes ? ip_address_in(*bytes) : std::nullopt;
}

NlRequest::NlRequest(std::uint16_t type, int flags)
    : type_(type), flags_(static_cast<std::uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK)) {
    append(bytes_of(nlmsghdr{}));
}

NlRequest& NlRequest::put_text(int type, std::string_view text) {
    std::string const terminated(text);
    return put_bytes(type, std::as_bytes(std::span(terminated.c_str(), terminated.size() + 1)));
}

NlRequest& NlRequest::put_ip(int type, IpAddress const& address) {
    return put_bytes(type, std::as_bytes(std::span(address.octets).first(address.bits() / 8)));
}

void NlRequest::reserve(std::size_t octets) {
    memory_.resize(std::max(octets, memory_.size()), boost::container::default_init);
}

ByteView NlRequest::numbered(std::uint32_t sequence, int more_flags) {
    nlmsghdr const header{static_cast<std::uint32_t>(size_), type_,
                          static_cast<std::uint16_t>(flags_ | more_flags), sequence, 0};
    std::memcpy(memory_.data(), &header, sizeof header);
    return whole();
}

void NlRequest::set_length(std::size_t at) {
    auto const length = size_ - at;
    complete_ = complete_ && length <= UINT16_MAX;
    auto const stored = static_cast<std::uint16_t>(length);
    std::memcpy(memory_.data() + at + offsetof(nlattr, nla_len), &stored, sizeof stored);
}

namespace {

constexpr int dump_attempts_max = 10;

// An answer and the ACK behind it must fit, or the kernel drops the ACK and returns ENOBUFS
// (netlink_attachskb()). 1,000 VFs take 256 KiB; libnl's own buffer ends at some 160.
constexpr int receive_bytes = 4 << 20;

// Constants of a protocol's socket, and how to enable it in the kernel.
struct Protocol {
    int number;
    char const* name;
    char const* remedy;
};

Protocol describe(NlProtocol protocol) {
    switch (protocol) {
        case NlProtocol::rdma:
            return {NETLINK_RDMA, "NETLINK_RDMA", "load the kernel module: modprobe ib_core"};
        case NlProtocol::netfilter:
            return {NETLINK_NETFILTER, "NETLINK_NETFILTER",
                    "load the kernel module: modprobe nfnetlink"};
        case NlProtocol::generic:
            return {NETLINK_GENERIC, "NETLINK_GENERIC", "allow AF_NETLINK in the unit"};
        case NlProtocol::route:
            break;
    }
    return {NETLINK_ROUTE, "NETLINK_ROUTE", "allow AF_NETLINK in the unit"};
}

Error system_error(std::string call, std::string detail, int error) {
    return {Problem::kernel_refused,
            fmt::format("{}: {}", detail, std::generic_category().message(error)),
            "see the kernel's log for the reason: journalctl -k",
            {errno_cause(std::move(call), error)}};
}

Result<void> send(int fd, ByteView message, std::string const& call) {
    // The kernel only reads it; the type of an iovec can't express that.
    iovec part{const_cast<std::byte*>(message.data()), message.size()};
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    msghdr header{};
    header.msg_name = &kernel;
    header.msg_namelen = sizeof kernel;
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (::sendmsg(fd, &header, 0) == std::ssize(message)) return {};
    return fail(system_error("sendmsg", fmt::format("{} could not be sent", call), errno));
}

Result<void> await_answer(int fd, std::string const& call, Deadline deadline) {
    VFMGR_TRY(Readiness const ready, await_readable(std::array{fd}, deadline));
    if (ready == Readiness::readable) return {};
    return fail(
        {Problem::timed_out,
         fmt::format("the kernel did not answer {} in time", call),
         "search the kernel's log for hung tasks: journalctl -k; another change may hold its lock",
         {errno_cause(call, ETIMEDOUT)}});
}

// Returns the next datagram from the kernel itself: other processes may send to our address too.
Result<std::vector<std::byte>> receive(int fd, std::string const& call, Deadline deadline) {
    while (true) {
        // Usually the kernel has answered within sendmsg(): the wait is for the other cases.
        auto const size = ::recv(fd, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (size < 0 && errno == EAGAIN) {
            VFMGR_CHECK(await_answer(fd, call, deadline));
            continue;
        }
        if (size < 0 && errno == EINTR) continue;
        if (size < 0)
            return fail(system_error("recv", "the answer to " + call + " was lost", errno));
        std::vector<std::byte> bytes(static_cast<std::size_t>(size));
        sockaddr_nl sender{};
        iovec part{bytes.data(), bytes.size()};
        msghdr header{};
        header.msg_name = &sender;
        header.msg_namelen = sizeof sender;
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        auto const got = ::recvmsg(fd, &header, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0)
            return fail(system_error("recvmsg", "the answer to " + call + " was lost", errno));
        if (sender.nl_pid != 0) continue;
        bytes.resize(static_cast<std::size_t>(got));
        return bytes;
    }
}

}  // namespace

Result<NlSocket> NlSocket::open(NlProtocol protocol) {
    NlSocketHandle handle(nl_socket_alloc());
    if (!handle) return fail(Problem::internal, "out of memory", "free memory and try again");
    errno = 0;
    auto const [number, name, remedy] = describe(protocol);
    if (nl_connect(handle.get(), number) < 0) {
        auto const error = errno != 0 ? errno : EIO;
        auto const problem =
            error == EPROTONOSUPPORT ? Problem::unsupported : Problem::kernel_refused;
        return fail({problem,
                     fmt::format("no {} socket could be opened: {}", name,
                                 std::generic_category().message(error)),
                     remedy,
                     {errno_cause("socket " + std::string(name), error)}});
    }
    auto const fd = nl_socket_get_fd(handle.get());
    // More than the system's limit takes CAP_NET_ADMIN, as does any operation that needs more.
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes) != 0)
        static_cast<void>(
            ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes));
    // Both are refinements of the answers; kernels without them answer all the same.
    int const on = 1;
    static_cast<void>(::setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on));
    static_cast<void>(::setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on));
    return NlSocket(std::move(handle));
}

int NlSocket::fd() const {
    return nl_socket_get_fd(handle_.get());
}

Result<NlReply> NlSocket::exchange(NlRequest& request, int more_flags, std::string const& call,
                                   Deadline deadline) {
    if (!request.complete())
        return fail(Problem::internal,
                    fmt::format("the request {} does not fit into a message", call),
                    "report this: it is a bug in vfmgr");
    // A repeat (an interrupted dump) gets a new number, to recognize late answers to the old.
    auto const sequence = nl_socket_use_seq(handle_.get());
    VFMGR_CHECK(send(fd(), request.numbered(sequence, more_flags), call));
    NlReply reply;
    while (true) {
        VFMGR_TRY(auto const datagram, receive(fd(), call, deadline));
        for (auto& answer : split_messages(datagram)) {
            if (answer.sequence != sequence) continue;  // an answer to an abandoned request
            if (answer.type == NLMSG_ERROR || answer.type == NLMSG_DONE) {
                reply.ack = parse_ack(answer);
                if ((answer.flags & NLM_F_DUMP_INTR) != 0 && reply.ack.ok())
                    reply.ack = {EINTR, {}};
                return reply;
            }
            reply.answers.push_back(std::move(answer));
        }
    }
}

Result<NlReply> NlSocket::ask(NlRequest request, std::string const& call, Deadline deadline) {
    return exchange(request, 0, call, deadline);
}

Result<NlAck> NlSocket::request(NlRequest request, std::string const& call, Deadline deadline) {
    VFMGR_TRY(auto reply, exchange(request, 0, call, deadline));
    return reply.ack;
}

Result<void> NlSocket::change(NlRequest request, NlRefusal refusal, Deadline deadline,
                              std::initializer_list<int> fine) {
    VFMGR_TRY(auto const ack, this->request(std::move(request), refusal.call, deadline));
    if (ack.ok() || std::ranges::find(fine, ack.error) != fine.end()) return {};
    auto error = nl_refusal(ack, std::move(refusal.call), std::move(refusal.detail),
                            std::move(refusal.remedy));
    auto const known = std::ranges::find(refusal.known, ack.error, &NlReason::error);
    if (known != refusal.known.end()) {
        error.remedy = known->remedy;
        error.problem = known->problem;
    }
    return fail(std::move(error));
}

Result<std::vector<NlAnswer>> NlSocket::dump(NlRequest request, std::string const& call,
                                             Deadline deadline) {
    NlAck last;
    for (int attempt = 0; attempt < dump_attempts_max; ++attempt) {
        VFMGR_TRY(auto reply, exchange(request, NLM_F_DUMP, call, deadline));
        auto const interrupted = std::any_of(
            reply.answers.begin(), reply.answers.end(),
            [](NlAnswer const& answer) { return (answer.flags & NLM_F_DUMP_INTR) != 0; });
        if (reply.ack.ok() && !interrupted) return std::move(reply.answers);
        last = interrupted ? NlAck{EINTR, {}} : reply.ack;
        if (last.error != EINTR) break;
    }
    return fail(nl_refusal(last, call, fmt::format("the kernel did not answer {}", call),
                           last.error == EINTR
                               ? "try again when fewer links change at once"
                               : "see the kernel's log for the reason: journalctl -k"));
}

Error nl_refusal(NlAck const& ack, std::string call, std::string detail, std::string remedy) {
    auto cause = errno_cause(std::move(call), ack.error);
    auto const reason = ack.text.empty() ? std::generic_category().message(ack.error) : ack.text;
    if (!ack.text.empty()) cause.text += " (" + ack.text + ")";
    return {Problem::kernel_refused,
            fmt::format("{}: {}", detail, reason),
            std::move(remedy),
            {std::move(cause)}};
}

std::vector<NlAnswer> split_messages(ByteView datagram) {
    std::vector<NlAnswer> answers;
    while (auto const header = front_object<nlmsghdr>(datagram)) {
        if (header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > datagram.size()) break;
        auto const body = datagram.subspan(sizeof(nlmsghdr), header->nlmsg_len - sizeof(nlmsghdr));
        answers.push_back({header->nlmsg_type, header->nlmsg_flags, header->nlmsg_seq,
                           std::vector<std::byte>(body.begin(), body.end())});
        datagram = after(datagram, header->nlmsg_len);
    }
    return answers;
}

NlAck parse_ack(NlAnswer const& answer) {
    auto const error = front_object<std::int32_t>(answer.payload);
    // Kernels before 4.13 may send NLMSG_DONE without a payload; an error always has one.
    if (!error) return {answer.type == NLMSG_DONE ? 0 : EBADMSG, {}};
    NlAck ack{*error > 0 || *error == INT32_MIN ? EBADMSG : -*error, {}};
    if ((answer.flags & NLM_F_ACK_TLVS) == 0) return ack;
    auto extra = after(answer.payload, sizeof(std::int32_t));
    if (answer.type == NLMSG_ERROR) {
        auto const original = front_object<nlmsghdr>(extra);
        if (!original) return ack;
        auto const echoed = (answer.flags & NLM_F_CAPPED) != 0
                                ? sizeof(nlmsghdr)
                                : std::max<std::size_t>(sizeof(nlmsghdr), original->nlmsg_len);
        extra = after(extra, echoed);
    }
    ack.text = Attributes(extra).text(NLMSGERR_ATTR_MSG).value_or("");
    return ack;
}

}  // namespace vfmgr
