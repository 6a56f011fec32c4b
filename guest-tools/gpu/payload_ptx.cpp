// SPDX-License-Identifier: Apache-2.0
// Written by guest-tools/gpu/make_payload_ptx: change that, not this.
#include "guest-tools/gpu/payload_ptx.hpp"

namespace vfmgr::guest::gpu {

char const* const payload_ptx = R"ptx(
.version 6.4
.target sm_60
.address_size 64
.visible .entry vfmgr_fill(
.param .u64 memory,
.param .u64 chunks,
.param .u64 first,
.param .u64 epoch,
.param .align 4 .b8 key[32], .param .u32 one)
.maxntid 256, 1, 1
.minnctapersm 4
{
.reg .pred %end, %wrong;
.reg .b32 %one, %n, %e0, %e1, %o0, %o1, %round, %t, %u, %bad, %power;
.reg .b32 %k<8>, %x<16>, %y<16>, %z<16>, %l<16>;
.reg .b64 %i, %step, %chunks, %first, %at, %chunk, %epoch, %memory;
.reg .b64 %result, %slot, %count, %lowest, %bytes, %w, %wide;
ld.param.u64 %memory, [memory]; ld.param.u64 %chunks, [chunks]; ld.param.u64 %first, [first];
ld.param.u64 %epoch, [epoch]; ld.param.u32 %one, [one]; shl.b32 %power, %one, 16;
mov.b64 {%e0, %e1}, %epoch; ld.param.u32 %k0, [key+0]; ld.param.u32 %k1, [key+4];
ld.param.u32 %k2, [key+8]; ld.param.u32 %k3, [key+12]; ld.param.u32 %k4, [key+16];
ld.param.u32 %k5, [key+20]; ld.param.u32 %k6, [key+24]; ld.param.u32 %k7, [key+28];
mov.u32 %z0, 0x61707865; mov.u32 %z1, 0x3320646e; mov.u32 %z2, 0x79622d32; mov.u32 %z3, 0x6b206574;
mov.u32 %z4, %k0; mov.u32 %z5, %k1; mov.u32 %z6, %k2; mov.u32 %z7, %k3; mov.u32 %z8, %k4;
mov.u32 %z9, %k5; mov.u32 %z10, %k6; mov.u32 %z11, %k7; mov.u32 %z12, 0; mov.u32 %z13, %e0;
mov.u32 %z14, %e1; mov.u32 %z15, 0; mad.lo.u32 %y1, %z1, %one, %z5; xor.b32 %y13, %z13, %y1;
mul.wide.u32 %wide, %y13, %power; mov.b64 {%t, %u}, %wide; mad.lo.u32 %y13, %t, %one, %u;
mad.lo.u32 %y9, %z9, %one, %y13; xor.b32 %y5, %z5, %y9; shf.l.wrap.b32 %y5, %y5, %y5, 12;
mad.lo.u32 %y1, %y1, %one, %y5; xor.b32 %y13, %y13, %y1; shf.l.wrap.b32 %y13, %y13, %y13, 8;
mad.lo.u32 %y9, %y9, %one, %y13; xor.b32 %y5, %y5, %y9; shf.l.wrap.b32 %y5, %y5, %y5, 7;
mad.lo.u32 %y2, %z2, %one, %z6; xor.b32 %y14, %z14, %y2; shf.l.wrap.b32 %y14, %y14, %y14, 16;
mad.lo.u32 %y10, %z10, %one, %y14; xor.b32 %y6, %z6, %y10; shf.l.wrap.b32 %y6, %y6, %y6, 12;
mad.lo.u32 %y2, %y2, %one, %y6; xor.b32 %y14, %y14, %y2; shf.l.wrap.b32 %y14, %y14, %y14, 8;
mad.lo.u32 %y10, %y10, %one, %y14; xor.b32 %y6, %y6, %y10; shf.l.wrap.b32 %y6, %y6, %y6, 7;
mad.lo.u32 %y3, %z3, %one, %z7; xor.b32 %y15, %z15, %y3; shf.l.wrap.b32 %y15, %y15, %y15, 16;
mad.lo.u32 %y11, %z11, %one, %y15; xor.b32 %y7, %z7, %y11; shf.l.wrap.b32 %y7, %y7, %y7, 12;
mad.lo.u32 %y3, %y3, %one, %y7; xor.b32 %y15, %y15, %y3; shf.l.wrap.b32 %y15, %y15, %y15, 8;
mad.lo.u32 %y11, %y11, %one, %y15; xor.b32 %y7, %y7, %y11; shf.l.wrap.b32 %y7, %y7, %y7, 7;
mov.u32 %t, %ctaid.x; mov.u32 %u, %ntid.x; mul.wide.u32 %i, %t, %u; mov.u32 %t, %tid.x;
cvt.u64.u32 %w, %t; add.u64 %i, %i, %w; mov.u32 %t, %nctaid.x; mul.wide.u32 %step, %t, %u;
LOOP:
setp.ge.u64 %end, %i, %chunks; @%end bra END; shl.b64 %at, %i, 6; add.u64 %at, %memory, %at;
add.u64 %chunk, %first, %i; cvt.u32.u64 %n, %chunk; mad.lo.u32 %y0, %z0, %one, %z4;
xor.b32 %y12, %n, %y0; mul.wide.u32 %wide, %y12, %power; mov.b64 {%t, %u}, %wide;
mad.lo.u32 %y12, %t, %one, %u; mad.lo.u32 %y8, %z8, %one, %y12; xor.b32 %y4, %z4, %y8;
shf.l.wrap.b32 %y4, %y4, %y4, 12; mad.lo.u32 %y0, %y0, %one, %y4; xor.b32 %y12, %y12, %y0;
shf.l.wrap.b32 %y12, %y12, %y12, 8; mad.lo.u32 %y8, %y8, %one, %y12; xor.b32 %y4, %y4, %y8;
shf.l.wrap.b32 %y4, %y4, %y4, 7; mad.lo.u32 %x0, %y0, %one, %y5; xor.b32 %x15, %y15, %x0;
mul.wide.u32 %wide, %x15, %power; mov.b64 {%t, %u}, %wide; mad.lo.u32 %x15, %t, %one, %u;
mad.lo.u32 %x10, %y10, %one, %x15; xor.b32 %x5, %y5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 12;
mad.lo.u32 %x0, %x0, %one, %x5; xor.b32 %x15, %x15, %x0; shf.l.wrap.b32 %x15, %x15, %x15, 8;
mad.lo.u32 %x10, %x10, %one, %x15; xor.b32 %x5, %x5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 7;
mad.lo.u32 %x1, %y1, %one, %y6; xor.b32 %x12, %y12, %x1; mul.wide.u32 %wide, %x12, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %x12, %t, %one, %u; mad.lo.u32 %x11, %y11, %one, %x12;
xor.b32 %x6, %y6, %x11; shf.l.wrap.b32 %x6, %x6, %x6, 12; mad.lo.u32 %x1, %x1, %one, %x6;
xor.b32 %x12, %x12, %x1; shf.l.wrap.b32 %x12, %x12, %x12, 8; mad.lo.u32 %x11, %x11, %one, %x12;
xor.b32 %x6, %x6, %x11; shf.l.wrap.b32 %x6, %x6, %x6, 7; mad.lo.u32 %x2, %y2, %one, %y7;
xor.b32 %x13, %y13, %x2; shf.l.wrap.b32 %x13, %x13, %x13, 16; mad.lo.u32 %x8, %y8, %one, %x13;
xor.b32 %x7, %y7, %x8; shf.l.wrap.b32 %x7, %x7, %x7, 12; mad.lo.u32 %x2, %x2, %one, %x7;
xor.b32 %x13, %x13, %x2; shf.l.wrap.b32 %x13, %x13, %x13, 8; mad.lo.u32 %x8, %x8, %one, %x13;
xor.b32 %x7, %x7, %x8; shf.l.wrap.b32 %x7, %x7, %x7, 7; mad.lo.u32 %x3, %y3, %one, %y4;
xor.b32 %x14, %y14, %x3; shf.l.wrap.b32 %x14, %x14, %x14, 16; mad.lo.u32 %x9, %y9, %one, %x14;
xor.b32 %x4, %y4, %x9; shf.l.wrap.b32 %x4, %x4, %x4, 12; mad.lo.u32 %x3, %x3, %one, %x4;
xor.b32 %x14, %x14, %x3; shf.l.wrap.b32 %x14, %x14, %x14, 8; mad.lo.u32 %x9, %x9, %one, %x14;
xor.b32 %x4, %x4, %x9; shf.l.wrap.b32 %x4, %x4, %x4, 7; mov.u32 %round, 9;
ROUND:
mad.lo.u32 %x0, %x0, %one, %x4; xor.b32 %x12, %x12, %x0; mul.wide.u32 %wide, %x12, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %x12, %t, %one, %u; mad.lo.u32 %x8, %x8, %one, %x12;
xor.b32 %x4, %x4, %x8; shf.l.wrap.b32 %x4, %x4, %x4, 12; mad.lo.u32 %x0, %x0, %one, %x4;
xor.b32 %x12, %x12, %x0; shf.l.wrap.b32 %x12, %x12, %x12, 8; mad.lo.u32 %x8, %x8, %one, %x12;
xor.b32 %x4, %x4, %x8; shf.l.wrap.b32 %x4, %x4, %x4, 7; mad.lo.u32 %x1, %x1, %one, %x5;
xor.b32 %x13, %x13, %x1; mul.wide.u32 %wide, %x13, %power; mov.b64 {%t, %u}, %wide;
mad.lo.u32 %x13, %t, %one, %u; mad.lo.u32 %x9, %x9, %one, %x13; xor.b32 %x5, %x5, %x9;
shf.l.wrap.b32 %x5, %x5, %x5, 12; mad.lo.u32 %x1, %x1, %one, %x5; xor.b32 %x13, %x13, %x1;
shf.l.wrap.b32 %x13, %x13, %x13, 8; mad.lo.u32 %x9, %x9, %one, %x13; xor.b32 %x5, %x5, %x9;
shf.l.wrap.b32 %x5, %x5, %x5, 7; mad.lo.u32 %x2, %x2, %one, %x6; xor.b32 %x14, %x14, %x2;
shf.l.wrap.b32 %x14, %x14, %x14, 16; mad.lo.u32 %x10, %x10, %one, %x14; xor.b32 %x6, %x6, %x10;
shf.l.wrap.b32 %x6, %x6, %x6, 12; mad.lo.u32 %x2, %x2, %one, %x6; xor.b32 %x14, %x14, %x2;
shf.l.wrap.b32 %x14, %x14, %x14, 8; mad.lo.u32 %x10, %x10, %one, %x14; xor.b32 %x6, %x6, %x10;
shf.l.wrap.b32 %x6, %x6, %x6, 7; mad.lo.u32 %x3, %x3, %one, %x7; xor.b32 %x15, %x15, %x3;
shf.l.wrap.b32 %x15, %x15, %x15, 16; mad.lo.u32 %x11, %x11, %one, %x15; xor.b32 %x7, %x7, %x11;
shf.l.wrap.b32 %x7, %x7, %x7, 12; mad.lo.u32 %x3, %x3, %one, %x7; xor.b32 %x15, %x15, %x3;
shf.l.wrap.b32 %x15, %x15, %x15, 8; mad.lo.u32 %x11, %x11, %one, %x15; xor.b32 %x7, %x7, %x11;
shf.l.wrap.b32 %x7, %x7, %x7, 7; mad.lo.u32 %x0, %x0, %one, %x5; xor.b32 %x15, %x15, %x0;
mul.wide.u32 %wide, %x15, %power; mov.b64 {%t, %u}, %wide; mad.lo.u32 %x15, %t, %one, %u;
mad.lo.u32 %x10, %x10, %one, %x15; xor.b32 %x5, %x5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 12;
mad.lo.u32 %x0, %x0, %one, %x5; xor.b32 %x15, %x15, %x0; shf.l.wrap.b32 %x15, %x15, %x15, 8;
mad.lo.u32 %x10, %x10, %one, %x15; xor.b32 %x5, %x5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 7;
mad.lo.u32 %x1, %x1, %one, %x6; xor.b32 %x12, %x12, %x1; mul.wide.u32 %wide, %x12, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %x12, %t, %one, %u; mad.lo.u32 %x11, %x11, %one, %x12;
xor.b32 %x6, %x6, %x11; shf.l.wrap.b32 %x6, %x6, %x6, 12; mad.lo.u32 %x1, %x1, %one, %x6;
xor.b32 %x12, %x12, %x1; shf.l.wrap.b32 %x12, %x12, %x12, 8; mad.lo.u32 %x11, %x11, %one, %x12;
xor.b32 %x6, %x6, %x11; shf.l.wrap.b32 %x6, %x6, %x6, 7; mad.lo.u32 %x2, %x2, %one, %x7;
xor.b32 %x13, %x13, %x2; shf.l.wrap.b32 %x13, %x13, %x13, 16; mad.lo.u32 %x8, %x8, %one, %x13;
xor.b32 %x7, %x7, %x8; shf.l.wrap.b32 %x7, %x7, %x7, 12; mad.lo.u32 %x2, %x2, %one, %x7;
xor.b32 %x13, %x13, %x2; shf.l.wrap.b32 %x13, %x13, %x13, 8; mad.lo.u32 %x8, %x8, %one, %x13;
xor.b32 %x7, %x7, %x8; shf.l.wrap.b32 %x7, %x7, %x7, 7; mad.lo.u32 %x3, %x3, %one, %x4;
xor.b32 %x14, %x14, %x3; shf.l.wrap.b32 %x14, %x14, %x14, 16; mad.lo.u32 %x9, %x9, %one, %x14;
xor.b32 %x4, %x4, %x9; shf.l.wrap.b32 %x4, %x4, %x4, 12; mad.lo.u32 %x3, %x3, %one, %x4;
xor.b32 %x14, %x14, %x3; shf.l.wrap.b32 %x14, %x14, %x14, 8; mad.lo.u32 %x9, %x9, %one, %x14;
xor.b32 %x4, %x4, %x9; shf.l.wrap.b32 %x4, %x4, %x4, 7; sub.u32 %round, %round, 1;
setp.ne.u32 %end, %round, 0; @%end bra ROUND; mad.lo.u32 %x4, %k0, %one, %x4;
mad.lo.u32 %x5, %k1, %one, %x5; mad.lo.u32 %x6, %k2, %one, %x6; mad.lo.u32 %x7, %k3, %one, %x7;
mad.lo.u32 %x8, %k4, %one, %x8; mad.lo.u32 %x9, %k5, %one, %x9; mad.lo.u32 %x10, %k6, %one, %x10;
mad.lo.u32 %x11, %k7, %one, %x11; add.u32 %x12, %x12, %n; add.u32 %x13, %x13, %e0;
add.u32 %x14, %x14, %e1; shl.b64 %w, %chunk, 6; mov.b64 {%x0, %x1}, %w; mov.u32 %x2, %e0;
mov.u32 %x3, %e1; st.global.v4.u32 [%at+0], {%x0, %x1, %x2, %x3};
st.global.v4.u32 [%at+16], {%x4, %x5, %x6, %x7}; st.global.v4.u32 [%at+32], {%x8, %x9, %x10, %x11};
st.global.v4.u32 [%at+48], {%x12, %x13, %x14, %x15}; add.u64 %i, %i, %step; bra LOOP;
END:
ret;
}
.visible .entry vfmgr_check(
.param .u64 memory,
.param .u64 chunks,
.param .u64 first,
.param .u64 epoch,
.param .u64 result,
.param .align 4 .b8 key[32], .param .u32 one)
.maxntid 256, 1, 1
.minnctapersm 4
{
.reg .pred %end, %wrong;
.reg .b32 %one, %n, %e0, %e1, %o0, %o1, %round, %t, %u, %bad, %power;
.reg .b32 %k<8>, %x<16>, %y<16>, %z<16>, %l<16>;
.reg .b64 %i, %step, %chunks, %first, %at, %chunk, %epoch, %memory;
.reg .b64 %result, %slot, %count, %lowest, %bytes, %w, %wide;
ld.param.u64 %memory, [memory]; ld.param.u64 %chunks, [chunks]; ld.param.u64 %first, [first];
ld.param.u64 %epoch, [epoch]; ld.param.u64 %result, [result]; ld.param.u32 %one, [one];
shl.b32 %power, %one, 16; mov.b64 {%e0, %e1}, %epoch; ld.param.u32 %k0, [key+0];
ld.param.u32 %k1, [key+4]; ld.param.u32 %k2, [key+8]; ld.param.u32 %k3, [key+12];
ld.param.u32 %k4, [key+16]; ld.param.u32 %k5, [key+20]; ld.param.u32 %k6, [key+24];
ld.param.u32 %k7, [key+28]; mov.u32 %z0, 0x61707865; mov.u32 %z1, 0x3320646e;
mov.u32 %z2, 0x79622d32; mov.u32 %z3, 0x6b206574; mov.u32 %z4, %k0; mov.u32 %z5, %k1;
mov.u32 %z6, %k2; mov.u32 %z7, %k3; mov.u32 %z8, %k4; mov.u32 %z9, %k5; mov.u32 %z10, %k6;
mov.u32 %z11, %k7; mov.u32 %z12, 0; mov.u32 %z13, %e0; mov.u32 %z14, %e1; mov.u32 %z15, 0;
mad.lo.u32 %y1, %z1, %one, %z5; xor.b32 %y13, %z13, %y1; mul.wide.u32 %wide, %y13, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %y13, %t, %one, %u; mad.lo.u32 %y9, %z9, %one, %y13;
xor.b32 %y5, %z5, %y9; shf.l.wrap.b32 %y5, %y5, %y5, 12; mad.lo.u32 %y1, %y1, %one, %y5;
xor.b32 %y13, %y13, %y1; shf.l.wrap.b32 %y13, %y13, %y13, 8; mad.lo.u32 %y9, %y9, %one, %y13;
xor.b32 %y5, %y5, %y9; shf.l.wrap.b32 %y5, %y5, %y5, 7; mad.lo.u32 %y2, %z2, %one, %z6;
xor.b32 %y14, %z14, %y2; shf.l.wrap.b32 %y14, %y14, %y14, 16; mad.lo.u32 %y10, %z10, %one, %y14;
xor.b32 %y6, %z6, %y10; shf.l.wrap.b32 %y6, %y6, %y6, 12; mad.lo.u32 %y2, %y2, %one, %y6;
xor.b32 %y14, %y14, %y2; shf.l.wrap.b32 %y14, %y14, %y14, 8; mad.lo.u32 %y10, %y10, %one, %y14;
xor.b32 %y6, %y6, %y10; shf.l.wrap.b32 %y6, %y6, %y6, 7; mad.lo.u32 %y3, %z3, %one, %z7;
xor.b32 %y15, %z15, %y3; shf.l.wrap.b32 %y15, %y15, %y15, 16; mad.lo.u32 %y11, %z11, %one, %y15;
xor.b32 %y7, %z7, %y11; shf.l.wrap.b32 %y7, %y7, %y7, 12; mad.lo.u32 %y3, %y3, %one, %y7;
xor.b32 %y15, %y15, %y3; shf.l.wrap.b32 %y15, %y15, %y15, 8; mad.lo.u32 %y11, %y11, %one, %y15;
xor.b32 %y7, %y7, %y11; shf.l.wrap.b32 %y7, %y7, %y7, 7; mov.u32 %t, %ctaid.x; mov.u32 %u, %ntid.x;
mul.wide.u32 %i, %t, %u; mov.u32 %t, %tid.x; cvt.u64.u32 %w, %t; add.u64 %i, %i, %w;
mov.u32 %t, %nctaid.x; mul.wide.u32 %step, %t, %u; mov.u64 %count, 0; mov.u64 %bytes, 0;
mov.u64 %lowest, -1;
LOOP:
setp.ge.u64 %end, %i, %chunks; @%end bra END; shl.b64 %at, %i, 6; add.u64 %at, %memory, %at;
ld.global.v4.u32 {%l0, %l1, %l2, %l3}, [%at+0]; ld.global.v4.u32 {%l4, %l5, %l6, %l7}, [%at+16];
ld.global.v4.u32 {%l8, %l9, %l10, %l11}, [%at+32];
ld.global.v4.u32 {%l12, %l13, %l14, %l15}, [%at+48]; add.u64 %chunk, %first, %i;
cvt.u32.u64 %n, %chunk; mad.lo.u32 %y0, %z0, %one, %z4; xor.b32 %y12, %n, %y0;
mul.wide.u32 %wide, %y12, %power; mov.b64 {%t, %u}, %wide; mad.lo.u32 %y12, %t, %one, %u;
mad.lo.u32 %y8, %z8, %one, %y12; xor.b32 %y4, %z4, %y8; shf.l.wrap.b32 %y4, %y4, %y4, 12;
mad.lo.u32 %y0, %y0, %one, %y4; xor.b32 %y12, %y12, %y0; shf.l.wrap.b32 %y12, %y12, %y12, 8;
mad.lo.u32 %y8, %y8, %one, %y12; xor.b32 %y4, %y4, %y8; shf.l.wrap.b32 %y4, %y4, %y4, 7;
mad.lo.u32 %x0, %y0, %one, %y5; xor.b32 %x15, %y15, %x0; mul.wide.u32 %wide, %x15, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %x15, %t, %one, %u; mad.lo.u32 %x10, %y10, %one, %x15;
xor.b32 %x5, %y5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 12; mad.lo.u32 %x0, %x0, %one, %x5;
xor.b32 %x15, %x15, %x0; shf.l.wrap.b32 %x15, %x15, %x15, 8; mad.lo.u32 %x10, %x10, %one, %x15;
xor.b32 %x5, %x5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 7; mad.lo.u32 %x1, %y1, %one, %y6;
xor.b32 %x12, %y12, %x1; mul.wide.u32 %wide, %x12, %power; mov.b64 {%t, %u}, %wide;
mad.lo.u32 %x12, %t, %one, %u; mad.lo.u32 %x11, %y11, %one, %x12; xor.b32 %x6, %y6, %x11;
shf.l.wrap.b32 %x6, %x6, %x6, 12; mad.lo.u32 %x1, %x1, %one, %x6; xor.b32 %x12, %x12, %x1;
shf.l.wrap.b32 %x12, %x12, %x12, 8; mad.lo.u32 %x11, %x11, %one, %x12; xor.b32 %x6, %x6, %x11;
shf.l.wrap.b32 %x6, %x6, %x6, 7; mad.lo.u32 %x2, %y2, %one, %y7; xor.b32 %x13, %y13, %x2;
shf.l.wrap.b32 %x13, %x13, %x13, 16; mad.lo.u32 %x8, %y8, %one, %x13; xor.b32 %x7, %y7, %x8;
shf.l.wrap.b32 %x7, %x7, %x7, 12; mad.lo.u32 %x2, %x2, %one, %x7; xor.b32 %x13, %x13, %x2;
shf.l.wrap.b32 %x13, %x13, %x13, 8; mad.lo.u32 %x8, %x8, %one, %x13; xor.b32 %x7, %x7, %x8;
shf.l.wrap.b32 %x7, %x7, %x7, 7; mad.lo.u32 %x3, %y3, %one, %y4; xor.b32 %x14, %y14, %x3;
shf.l.wrap.b32 %x14, %x14, %x14, 16; mad.lo.u32 %x9, %y9, %one, %x14; xor.b32 %x4, %y4, %x9;
shf.l.wrap.b32 %x4, %x4, %x4, 12; mad.lo.u32 %x3, %x3, %one, %x4; xor.b32 %x14, %x14, %x3;
shf.l.wrap.b32 %x14, %x14, %x14, 8; mad.lo.u32 %x9, %x9, %one, %x14; xor.b32 %x4, %x4, %x9;
shf.l.wrap.b32 %x4, %x4, %x4, 7; mov.u32 %round, 9;
ROUND:
mad.lo.u32 %x0, %x0, %one, %x4; xor.b32 %x12, %x12, %x0; mul.wide.u32 %wide, %x12, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %x12, %t, %one, %u; mad.lo.u32 %x8, %x8, %one, %x12;
xor.b32 %x4, %x4, %x8; shf.l.wrap.b32 %x4, %x4, %x4, 12; mad.lo.u32 %x0, %x0, %one, %x4;
xor.b32 %x12, %x12, %x0; shf.l.wrap.b32 %x12, %x12, %x12, 8; mad.lo.u32 %x8, %x8, %one, %x12;
xor.b32 %x4, %x4, %x8; shf.l.wrap.b32 %x4, %x4, %x4, 7; mad.lo.u32 %x1, %x1, %one, %x5;
xor.b32 %x13, %x13, %x1; mul.wide.u32 %wide, %x13, %power; mov.b64 {%t, %u}, %wide;
mad.lo.u32 %x13, %t, %one, %u; mad.lo.u32 %x9, %x9, %one, %x13; xor.b32 %x5, %x5, %x9;
shf.l.wrap.b32 %x5, %x5, %x5, 12; mad.lo.u32 %x1, %x1, %one, %x5; xor.b32 %x13, %x13, %x1;
shf.l.wrap.b32 %x13, %x13, %x13, 8; mad.lo.u32 %x9, %x9, %one, %x13; xor.b32 %x5, %x5, %x9;
shf.l.wrap.b32 %x5, %x5, %x5, 7; mad.lo.u32 %x2, %x2, %one, %x6; xor.b32 %x14, %x14, %x2;
shf.l.wrap.b32 %x14, %x14, %x14, 16; mad.lo.u32 %x10, %x10, %one, %x14; xor.b32 %x6, %x6, %x10;
shf.l.wrap.b32 %x6, %x6, %x6, 12; mad.lo.u32 %x2, %x2, %one, %x6; xor.b32 %x14, %x14, %x2;
shf.l.wrap.b32 %x14, %x14, %x14, 8; mad.lo.u32 %x10, %x10, %one, %x14; xor.b32 %x6, %x6, %x10;
shf.l.wrap.b32 %x6, %x6, %x6, 7; mad.lo.u32 %x3, %x3, %one, %x7; xor.b32 %x15, %x15, %x3;
shf.l.wrap.b32 %x15, %x15, %x15, 16; mad.lo.u32 %x11, %x11, %one, %x15; xor.b32 %x7, %x7, %x11;
shf.l.wrap.b32 %x7, %x7, %x7, 12; mad.lo.u32 %x3, %x3, %one, %x7; xor.b32 %x15, %x15, %x3;
shf.l.wrap.b32 %x15, %x15, %x15, 8; mad.lo.u32 %x11, %x11, %one, %x15; xor.b32 %x7, %x7, %x11;
shf.l.wrap.b32 %x7, %x7, %x7, 7; mad.lo.u32 %x0, %x0, %one, %x5; xor.b32 %x15, %x15, %x0;
mul.wide.u32 %wide, %x15, %power; mov.b64 {%t, %u}, %wide; mad.lo.u32 %x15, %t, %one, %u;
mad.lo.u32 %x10, %x10, %one, %x15; xor.b32 %x5, %x5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 12;
mad.lo.u32 %x0, %x0, %one, %x5; xor.b32 %x15, %x15, %x0; shf.l.wrap.b32 %x15, %x15, %x15, 8;
mad.lo.u32 %x10, %x10, %one, %x15; xor.b32 %x5, %x5, %x10; shf.l.wrap.b32 %x5, %x5, %x5, 7;
mad.lo.u32 %x1, %x1, %one, %x6; xor.b32 %x12, %x12, %x1; mul.wide.u32 %wide, %x12, %power;
mov.b64 {%t, %u}, %wide; mad.lo.u32 %x12, %t, %one, %u; mad.lo.u32 %x11, %x11, %one, %x12;
xor.b32 %x6, %x6, %x11; shf.l.wrap.b32 %x6, %x6, %x6, 12; mad.lo.u32 %x1, %x1, %one, %x6;
xor.b32 %x12, %x12, %x1; shf.l.wrap.b32 %x12, %x12, %x12, 8; mad.lo.u32 %x11, %x11, %one, %x12;
xor.b32 %x6, %x6, %x11; shf.l.wrap.b32 %x6, %x6, %x6, 7; mad.lo.u32 %x2, %x2, %one, %x7;
xor.b32 %x13, %x13, %x2; shf.l.wrap.b32 %x13, %x13, %x13, 16; mad.lo.u32 %x8, %x8, %one, %x13;
xor.b32 %x7, %x7, %x8; shf.l.wrap.b32 %x7, %x7, %x7, 12; mad.lo.u32 %x2, %x2, %one, %x7;
xor.b32 %x13, %x13, %x2; shf.l.wrap.b32 %x13, %x13, %x13, 8; mad.lo.u32 %x8, %x8, %one, %x13;
xor.b32 %x7, %x7, %x8; shf.l.wrap.b32 %x7, %x7, %x7, 7; mad.lo.u32 %x3, %x3, %one, %x4;
xor.b32 %x14, %x14, %x3; shf.l.wrap.b32 %x14, %x14, %x14, 16; mad.lo.u32 %x9, %x9, %one, %x14;
xor.b32 %x4, %x4, %x9; shf.l.wrap.b32 %x4, %x4, %x4, 12; mad.lo.u32 %x3, %x3, %one, %x4;
xor.b32 %x14, %x14, %x3; shf.l.wrap.b32 %x14, %x14, %x14, 8; mad.lo.u32 %x9, %x9, %one, %x14;
xor.b32 %x4, %x4, %x9; shf.l.wrap.b32 %x4, %x4, %x4, 7; sub.u32 %round, %round, 1;
setp.ne.u32 %end, %round, 0; @%end bra ROUND; mad.lo.u32 %x4, %k0, %one, %x4;
mad.lo.u32 %x5, %k1, %one, %x5; mad.lo.u32 %x6, %k2, %one, %x6; mad.lo.u32 %x7, %k3, %one, %x7;
mad.lo.u32 %x8, %k4, %one, %x8; mad.lo.u32 %x9, %k5, %one, %x9; mad.lo.u32 %x10, %k6, %one, %x10;
mad.lo.u32 %x11, %k7, %one, %x11; add.u32 %x12, %x12, %n; add.u32 %x13, %x13, %e0;
add.u32 %x14, %x14, %e1; shl.b64 %w, %chunk, 6; mov.b64 {%x0, %x1}, %w; mov.u32 %x2, %e0;
mov.u32 %x3, %e1; mov.u32 %bad, 0; xor.b32 %t, %l0, %x0; or.b32 %bad, %bad, %t;
xor.b32 %t, %l1, %x1; or.b32 %bad, %bad, %t; xor.b32 %t, %l2, %x2; or.b32 %bad, %bad, %t;
xor.b32 %t, %l3, %x3; or.b32 %bad, %bad, %t; xor.b32 %t, %l4, %x4; or.b32 %bad, %bad, %t;
xor.b32 %t, %l5, %x5; or.b32 %bad, %bad, %t; xor.b32 %t, %l6, %x6; or.b32 %bad, %bad, %t;
xor.b32 %t, %l7, %x7; or.b32 %bad, %bad, %t; xor.b32 %t, %l8, %x8; or.b32 %bad, %bad, %t;
xor.b32 %t, %l9, %x9; or.b32 %bad, %bad, %t; xor.b32 %t, %l10, %x10; or.b32 %bad, %bad, %t;
xor.b32 %t, %l11, %x11; or.b32 %bad, %bad, %t; xor.b32 %t, %l12, %x12; or.b32 %bad, %bad, %t;
xor.b32 %t, %l13, %x13; or.b32 %bad, %bad, %t; xor.b32 %t, %l14, %x14; or.b32 %bad, %bad, %t;
xor.b32 %t, %l15, %x15; or.b32 %bad, %bad, %t; setp.eq.u32 %wrong, %bad, 0; @%wrong bra RIGHT;
min.u64 %lowest, %lowest, %chunk; add.u64 %count, %count, 1; xor.b32 %t, %l0, %x0;
and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l1, %x1; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l2, %x2; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l3, %x3; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l4, %x4; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l5, %x5; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l6, %x6; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l7, %x7; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l8, %x8; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l9, %x9; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l10, %x10; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l11, %x11; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l12, %x12; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l13, %x13; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l14, %x14; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
xor.b32 %t, %l15, %x15; and.b32 %u, %t, 0x7f7f7f7f; add.u32 %u, %u, 0x7f7f7f7f; or.b32 %u, %u, %t;
and.b32 %u, %u, 0x80808080; popc.b32 %u, %u; cvt.u64.u32 %w, %u; add.u64 %bytes, %bytes, %w;
RIGHT:
add.u64 %i, %i, %step; bra LOOP;
END:
setp.eq.u64 %end, %count, 0; @%end bra DONE; red.global.add.u64 [%result], %count;
red.global.add.u64 [%result+8], %bytes; red.global.min.u64 [%result+16], %lowest;
atom.global.add.u64 %slot, [%result+24], 1; setp.ge.u64 %end, %slot, 16; @%end bra DONE;
shl.b64 %slot, %slot, 3; add.u64 %slot, %result, %slot; st.global.u64 [%slot+32], %lowest;
DONE:
ret;
}
)ptx";

}  // namespace vfmgr::guest::gpu
