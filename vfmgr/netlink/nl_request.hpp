// SPDX-License-Identifier: Apache-2.0
// A netlink request under construction: a message header, one fixed struct, attributes. A value
// that moves into NlSocket; any thread.
#pragma once

#include <netlink/msg.h>

#include <memory>
#include <string_view>

#include "vfmgr/netlink/attributes.hpp"

namespace vfmgr {

template <auto Free>
struct NlFreed {
    template <class T>
    void operator()(T* handle) const noexcept {
        static_cast<void>(Free(handle));
    }
};
template <class T, auto Free>
using NlHandle = std::unique_ptr<T, NlFreed<Free>>;

using NlMessage = NlHandle<nl_msg, nlmsg_free>;

class NlRequest {
  public:
    // `flags` besides NLM_F_REQUEST and NLM_F_ACK, which every request carries: an ACK is how we
    // know that the kernel is done. `bytes_max` of the whole message: one page holds all but lists.
    NlRequest(std::uint16_t type, int flags, std::size_t bytes_max = 4096);

    // The fixed struct of the family; before any attribute.
    template <class T>
    NlRequest& header(T const& header) {
        return append(bytes_of(header));
    }
    // Structs with padding do not compile: a copy need not keep what the padding held, and what
    // stood on the stack is not the kernel's to see. Their bytes go through put_bytes().
    template <class T>
        requires std::has_unique_object_representations_v<T>
    NlRequest& put(int type, T const& value) {
        return put_bytes(type, bytes_of(value));
    }
    NlRequest& put_text(int type, std::string_view text);  // NUL added
    NlRequest& put_bytes(int type, ByteView bytes);
    NlRequest& put_ip(int type, IpAddress const& address);
    // fill(request) adds the attributes inside.
    template <class Fill>
    NlRequest& nest(int type, Fill&& fill) {
        auto* const start = begin(type);
        fill(*this);
        end(start);
        return *this;
    }

    // So far, with the header.
    [[nodiscard]] std::size_t bytes() const { return message_ ? nlmsg_hdr(get())->nlmsg_len : 0; }
    // Nothing was left out for want of space.
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] nl_msg* get() const { return message_.get(); }

  private:
    NlRequest& append(ByteView bytes);
    nlattr* begin(int type);
    void end(nlattr* start);

    NlMessage message_;
    bool complete_ = true;
};

}  // namespace vfmgr
