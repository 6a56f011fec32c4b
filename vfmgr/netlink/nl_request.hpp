// SPDX-License-Identifier: Apache-2.0
// Builds a netlink request: a message header, one fixed struct, attributes. A value that moves into
// NlSocket; any thread. Not libnl's nl_msg: it flags nests, which iproute2's messages about VFs do
// not, and takes several times the instructions for a batch of VFs.
#pragma once

#include <linux/netlink.h>

#include <array>
#include <boost/container/vector.hpp>
#include <string_view>

#include "vfmgr/netlink/attributes.hpp"

namespace vfmgr {

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
    // The message as sent. The view ends with the next change of the request.
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

}  // namespace vfmgr
