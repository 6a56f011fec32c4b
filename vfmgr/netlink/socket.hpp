// SPDX-License-Identifier: Apache-2.0
// Netlink messages: attributes, requests, and the socket that carries them. One thread for each
// socket.
#pragma once

#include <linux/netlink.h>
#include <netlink/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/container/vector.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/os/handle.hpp"
#include "api/types/addresses.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// Reads netlink attributes from an answer without trusting any length. Views into bytes that the
// caller owns and that must outlive them; any thread.

using ByteView = std::span<std::byte const>;

// Returns the object at the front of `bytes`; nothing when there are too few. Copies it: netlink
// aligns to four bytes only.
template <class T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::optional<T> front_object(ByteView bytes) {
    if (bytes.size() < sizeof(T)) return std::nullopt;
    T object;
    std::memcpy(&object, bytes.data(), sizeof(T));
    return object;
}

// Skips a header of `size` bytes, aligned to four as netlink does; empty when too short.
[[nodiscard]] ByteView after(ByteView bytes, std::size_t size);

template <class T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] ByteView bytes_of(T const& object) {
    return std::as_bytes(std::span<T const, 1>(&object, 1));
}

// Converts network to host order and back.
[[nodiscard]] constexpr std::uint16_t big_endian(std::uint16_t value) {
    if constexpr (std::endian::native == std::endian::big) return value;
    return static_cast<std::uint16_t>((value << 8U) | (value >> 8U));
}

// Four octets are IPv4, sixteen IPv6.
[[nodiscard]] std::optional<IpAddress> ip_address_in(ByteView octets);
// AF_INET or AF_INET6.
[[nodiscard]] std::uint8_t family_of(IpAddress const& address);

struct Attribute {
    std::uint16_t type = 0;  // without the flags in the top two bits
    ByteView value;
};

class Attributes {
  public:
    // Stops at the first attribute with an impossible length; keeps those before it.
    explicit Attributes(ByteView payload);

    [[nodiscard]] std::vector<Attribute> const& all() const& { return attributes_; }
    std::vector<Attribute> const& all() const&& = delete;  // a loop over a temporary's would dangle
    [[nodiscard]] std::optional<ByteView> find(std::uint16_t type) const;
    // Absent when missing or shorter than a T.
    template <class T>
    [[nodiscard]] std::optional<T> value(std::uint16_t type) const {
        auto const bytes = find(type);
        return bytes ? front_object<T>(*bytes) : std::nullopt;
    }
    // Returns the text up to the first NUL or the attribute's end.
    [[nodiscard]] std::optional<std::string> text(std::uint16_t type) const;
    // Empty when missing.
    [[nodiscard]] Attributes nested(std::uint16_t type) const;
    // Needs exactly six octets: an IPoIB address has twenty and is no MAC.
    [[nodiscard]] std::optional<MacAddress> mac(std::uint16_t type) const;
    // The port GUID at the end of IPoIB's address of 20 bytes: flags, queue pair, GID (RFC 4391).
    [[nodiscard]] std::optional<Guid> port_guid(std::uint16_t type) const;
    [[nodiscard]] std::optional<IpAddress> ip(std::uint16_t type) const;

  private:
    std::vector<Attribute> attributes_;
};

// Builds a netlink request: a message header, one fixed struct, attributes. A value that moves into
// NlSocket; any thread. Not libnl's nl_msg: it flags nests, which iproute2's messages about VFs do
// not, and takes several times the instructions for a batch of VFs.

class NlRequest {
  public:
    // Adds `flags` to NLM_F_REQUEST and NLM_F_ACK, which every request has: the ACK shows that the
    // kernel is done.
    NlRequest(std::uint16_t type, int flags);

    // Reserves memory for a message of `octets`; it grows when needed.
    void reserve(std::size_t octets);
    // Appends the fixed struct of the family; call it before adding any attribute.
    template <class T>
    NlRequest& header(T const& header) {
        append(bytes_of(header));
        return *this;
    }
    // Structs with padding do not compile: a copy need not keep the padding's content, and stack
    // content must not leak to the kernel. Use put_bytes() for their bytes.
    template <class T>
        requires std::has_unique_object_representations_v<T>
    NlRequest& put(int type, T const& value) {
        std::array<std::byte, sizeof(nlattr) + sizeof(T)> attribute;
        nlattr const header{sizeof attribute, static_cast<std::uint16_t>(type)};
        std::memcpy(attribute.data(), &header, sizeof header);
        std::memcpy(attribute.data() + sizeof header, &value, sizeof value);
        append(attribute);
        return *this;
    }
    NlRequest& put_text(int type, std::string_view text);  // NUL added
    NlRequest& put_bytes(int type, ByteView bytes) {
        append_header(type, sizeof(nlattr) + bytes.size());
        append(bytes);
        return *this;
    }
    NlRequest& put_ip(int type, IpAddress const& address);
    // fill(request) adds the attributes inside. Pass NLA_F_NESTED in `type` where needed:
    // iproute2's messages about VFs lack it.
    template <class Fill>
    NlRequest& nest(int type, Fill&& fill) {
        auto const at = size_;
        append_header(type, sizeof(nlattr));
        fill(*this);
        set_length(at);
        return *this;
    }

    // The message so far, behind the nlmsghdr.
    [[nodiscard]] ByteView body() const { return whole().subspan(sizeof(nlmsghdr)); }
    // False when an attribute is longer than its 16-bit length can express.
    [[nodiscard]] bool complete() const { return complete_; }
    // The message as sent. The view is valid until the request changes.
    [[nodiscard]] ByteView numbered(std::uint32_t sequence, int more_flags);

  private:
    [[nodiscard]] ByteView whole() const { return {memory_.data(), size_}; }
    void append(ByteView bytes) {
        auto const padding = (NLMSG_ALIGNTO - bytes.size() % NLMSG_ALIGNTO) % NLMSG_ALIGNTO;
        auto const size = size_ + bytes.size() + padding;
        if (size > memory_.size()) reserve(2 * size);
        std::memcpy(memory_.data() + size_, bytes.data(), bytes.size());
        std::memset(memory_.data() + size - padding, 0, padding);
        size_ = size;
    }
    void append_header(int type, std::size_t length) {
        complete_ = complete_ && length <= UINT16_MAX;
        append(
            bytes_of(nlattr{static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(type)}));
    }
    void set_length(std::size_t at);

    std::uint16_t type_;
    std::uint16_t flags_;
    boost::container::vector<std::byte> memory_;  // std::vector would fill it with zeros first
    std::size_t size_ = 0;                        // of the message in it
    bool complete_ = true;
};

// One netlink conversation with the kernel: requests out, answers or an ACK back, with a deadline.
// Owned by one thread at a time; cheap to open, so open one where it is used.

using NlSocketHandle = Handle<nl_sock, nl_socket_free>;

enum class NlProtocol { route, rdma, netfilter, generic };

// The kernel's verdict on one request.
struct NlAck {
    int error = 0;     // errno; 0: done
    std::string text;  // the extended ACK's sentence, empty when the kernel sent none
    [[nodiscard]] bool ok() const { return error == 0; }
    bool operator==(NlAck const&) const = default;
};

// One message of an answer, without its nlmsghdr.
struct NlAnswer {
    std::uint16_t type = 0;
    std::uint16_t flags = 0;
    std::uint32_t sequence = 0;
    std::vector<std::byte> payload;
};

struct NlReply {
    NlAck ack;
    std::vector<NlAnswer> answers;
};

// An errno that says more about a request than others do.
struct NlReason {
    int error = 0;
    std::string remedy;
    Problem problem = Problem::kernel_refused;
};

// How a refused request is reported: see nl_refusal().
struct NlRefusal {
    std::string call;
    std::string detail;
    std::string remedy = "see the kernel's log for the reason: journalctl -k";
    std::vector<NlReason> known{};
};

class NlSocket {
  public:
    [[nodiscard]] static Result<NlSocket> open(NlProtocol protocol);

    // An Error only when there is no verdict: deadline passed, socket broken. `call` names the
    // request in it, as strace would: "RTM_SETLINK enp1s0".
    [[nodiscard]] Result<NlReply> ask(NlRequest request, std::string const& call,
                                      Deadline deadline);
    // The same for a change, where only the verdict counts.
    [[nodiscard]] Result<NlAck> request(NlRequest request, std::string const& call,
                                        Deadline deadline);
    // Dumps, and repeats the dump while the kernel reports that the data changed under the reader.
    [[nodiscard]] Result<std::vector<NlAnswer>> dump(NlRequest request, std::string const& call,
                                                     Deadline deadline);

    // Dumps, and parses the answers of one type, into an optional or a vector; leaves out those in
    // which `parse` finds nothing.
    template <class Parse>
    [[nodiscard]] auto list(NlRequest request, std::uint16_t answer_type, std::string const& call,
                            Deadline deadline, Parse parse)
        -> Result<std::vector<typename std::invoke_result_t<Parse, ByteView>::value_type>> {
        VFMGR_TRY(auto const answers, dump(std::move(request), call, deadline));
        std::vector<typename std::invoke_result_t<Parse, ByteView>::value_type> parsed;
        for (auto const& answer : answers)
            if (answer.type == answer_type) {
                auto found = parse(answer.payload);
                if constexpr (std::ranges::range<decltype(found)>)
                    std::ranges::move(found, std::back_inserter(parsed));
                else if (found)
                    parsed.push_back(std::move(*found));
            }
        return parsed;
    }
    // Makes a change. If the kernel refuses it, `refusal` becomes the Error, unless the errno is
    // one of `fine`: what was requested already holds.
    [[nodiscard]] Result<void> change(NlRequest request, NlRefusal refusal, Deadline deadline,
                                      std::initializer_list<int> fine = {});

  private:
    explicit NlSocket(NlSocketHandle handle) : handle_(std::move(handle)) {}
    [[nodiscard]] int fd() const;
    [[nodiscard]] Result<NlReply> exchange(NlRequest& request, int more_flags,
                                           std::string const& call, Deadline deadline);

    NlSocketHandle handle_;
};

// The kernel's refusal as an Error: "<detail>: <its reason>", with call and errno as cause.
[[nodiscard]] Error nl_refusal(NlAck const& ack, std::string call, std::string detail,
                               std::string remedy);

// --- parsing, apart from sockets so that tests and fuzzers reach it ---

[[nodiscard]] std::vector<NlAnswer> split_messages(ByteView datagram);
// Parses the payload of NLMSG_ERROR or NLMSG_DONE.
[[nodiscard]] NlAck parse_ack(NlAnswer const& answer);

}  // namespace vfmgr
