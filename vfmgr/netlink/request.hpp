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
struct Freed {
    template <class T>
    void operator()(T* handle) const noexcept {
        static_cast<void>(Free(handle));
    }
};
template <class T, auto Free>
using Handle = std::unique_ptr<T, Freed<Free>>;

using NlMessage = Handle<nl_msg, nlmsg_free>;

class Request {
  public:
    // `flags` besides NLM_F_REQUEST and NLM_F_ACK, which every request carries: an ACK is how we
    // know that the kernel is done.
    Request(std::uint16_t type, int flags);

    // The fixed struct of the family; before any attribute.
    template <class T>
    Request& header(T const& header) {
        return append(bytes_of(header));
    }
    // Whole structs are copied as they are: zero their padding (value-initialise them).
    template <class T>
        requires std::is_trivially_copyable_v<T>
    Request& put(int type, T const& value) {
        return put_bytes(type, bytes_of(value));
    }
    Request& put_text(int type, std::string_view text);  // NUL added
    Request& put_bytes(int type, ByteView bytes);
    Request& put_ip(int type, IpAddress const& address);
    // fill(request) adds the attributes inside.
    template <class Fill>
    Request& nest(int type, Fill&& fill) {
        auto* const start = begin(type);
        fill(*this);
        end(start);
        return *this;
    }

    // Nothing was left out for want of space.
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] nl_msg* get() const { return message_.get(); }

  private:
    Request& append(ByteView bytes);
    nlattr* begin(int type);
    void end(nlattr* start);

    NlMessage message_;
    bool complete_ = true;
};

}  // namespace vfmgr
