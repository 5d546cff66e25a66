module hbfp_group_hbfp8_recoded_g1x1_n15_s16(swap, weight, north, clk, rst, east, swap_east, south, west);
  reg \$auto$verilog_backend.cc:2355:dump_module$1  = 0;
  wire [7:0] \$1 ;
  reg \$2 ;
  reg [7:0] \$3 ;
  (* init = 12'h000 *)
  wire [11:0] act;
  input clk;
  wire clk;
  wire [11:0] code;
  reg [7:0] complements = 8'h00;
  output [11:0] east;
  reg [11:0] east = 12'h000;
  input [14:0] north;
  wire [14:0] north;
  wire [14:0] \north$17 ;
  (* init = 16'h0000 *)
  wire [15:0] psum;
  input rst;
  wire rst;
  output [15:0] south;
  reg [15:0] south = 16'h0000;
  wire [15:0] \south$13 ;
  input swap;
  wire swap;
  (* init = 1'h0 *)
  wire \swap$10 ;
  output swap_east;
  reg swap_east = 1'h0;
  input [7:0] weight;
  wire [7:0] weight;
  wire [7:0] \weight$16 ;
  wire [7:0] weights;
  input [11:0] west;
  wire [11:0] west;
  always @(posedge clk)
    complements <= \$3 ;
  always @(posedge clk)
    south <= \south$13 ;
  assign \$1  = ~ weight;
  assign weights = ~ complements;
  always @(posedge clk)
    east <= west;
  always @(posedge clk)
    swap_east <= \$2 ;
  hbfp_dot_m8_t1_n15_s16 c0 (
    .code(west),
    .north(north),
    .south(\south$13 ),
    .weight(weights)
  );
  always @* begin
    if (\$auto$verilog_backend.cc:2355:dump_module$1 ) begin end
    \$2  = swap;
    if (rst) begin
      \$2  = 1'h0;
    end
  end
  always @* begin
    if (\$auto$verilog_backend.cc:2355:dump_module$1 ) begin end
    \$3  = complements;
    if (swap) begin
      \$3  = \$1 ;
    end
  end
  assign act = east;
  assign \swap$10  = swap_east;
  assign psum = south;
  assign code = west;
  assign \weight$16  = weights;
  assign \north$17  = north;
endmodule
module hbfp_dot_m8_t1_n15_s16(weight, north, south, code);
  wire [8:0] \$1 ;
  wire [8:0] \$10 ;
  wire [8:0] \$11 ;
  wire [8:0] \$12 ;
  wire [8:0] \$13 ;
  wire [8:0] \$14 ;
  wire [8:0] \$15 ;
  wire [8:0] \$16 ;
  wire [8:0] \$17 ;
  wire [8:0] \$18 ;
  wire [8:0] \$19 ;
  wire [8:0] \$2 ;
  wire \$20 ;
  wire \$21 ;
  wire \$22 ;
  wire \$23 ;
  wire \$24 ;
  wire [8:0] \$3 ;
  wire [8:0] \$4 ;
  wire [8:0] \$5 ;
  wire [8:0] \$6 ;
  wire [8:0] \$7 ;
  wire [8:0] \$8 ;
  wire [8:0] \$9 ;
  wire a;
  wire \a$100 ;
  wire \a$104 ;
  wire \a$109 ;
  wire \a$117 ;
  wire \a$121 ;
  wire \a$125 ;
  wire \a$131 ;
  wire \a$138 ;
  wire \a$142 ;
  wire \a$146 ;
  wire \a$15 ;
  wire \a$152 ;
  wire \a$159 ;
  wire \a$163 ;
  wire \a$168 ;
  wire \a$176 ;
  wire \a$180 ;
  wire \a$185 ;
  wire \a$192 ;
  wire \a$196 ;
  wire \a$204 ;
  wire \a$208 ;
  wire \a$215 ;
  wire \a$22 ;
  wire \a$26 ;
  wire \a$32 ;
  wire \a$36 ;
  wire \a$44 ;
  wire \a$48 ;
  wire \a$52 ;
  wire \a$59 ;
  wire \a$63 ;
  wire \a$67 ;
  wire \a$76 ;
  wire \a$80 ;
  wire \a$84 ;
  wire \a$89 ;
  wire \a$96 ;
  wire b;
  wire \b$101 ;
  wire \b$105 ;
  wire \b$111 ;
  wire \b$118 ;
  wire \b$122 ;
  wire \b$127 ;
  wire \b$133 ;
  wire \b$139 ;
  wire \b$143 ;
  wire \b$148 ;
  wire \b$154 ;
  wire \b$16 ;
  wire \b$160 ;
  wire \b$164 ;
  wire \b$170 ;
  wire \b$177 ;
  wire \b$181 ;
  wire \b$187 ;
  wire \b$193 ;
  wire \b$198 ;
  wire \b$205 ;
  wire \b$210 ;
  wire \b$217 ;
  wire \b$23 ;
  wire \b$27 ;
  wire \b$33 ;
  wire \b$37 ;
  wire \b$45 ;
  wire \b$49 ;
  wire \b$54 ;
  wire \b$60 ;
  wire \b$64 ;
  wire \b$68 ;
  wire \b$77 ;
  wire \b$81 ;
  wire \b$85 ;
  wire \b$91 ;
  wire \b$97 ;
  wire bit102;
  wire bit115;
  wire bit129;
  wire bit143;
  wire bit156;
  wire bit167;
  wire bit177;
  wire bit185;
  wire bit193;
  wire bit197;
  wire bit54;
  wire bit58;
  wire bit64;
  wire bit71;
  wire bit80;
  wire bit90;
  wire c;
  wire \c$102 ;
  wire \c$107 ;
  wire \c$113 ;
  wire \c$119 ;
  wire \c$123 ;
  wire \c$129 ;
  wire \c$134 ;
  wire \c$140 ;
  wire \c$144 ;
  wire \c$150 ;
  wire \c$155 ;
  wire \c$161 ;
  wire \c$166 ;
  wire \c$17 ;
  wire \c$172 ;
  wire \c$178 ;
  wire \c$183 ;
  wire \c$189 ;
  wire \c$194 ;
  wire \c$200 ;
  wire \c$206 ;
  wire \c$212 ;
  wire \c$219 ;
  wire \c$24 ;
  wire \c$28 ;
  wire \c$34 ;
  wire \c$38 ;
  wire \c$46 ;
  wire \c$50 ;
  wire \c$55 ;
  wire \c$61 ;
  wire \c$65 ;
  wire \c$70 ;
  wire \c$78 ;
  wire \c$82 ;
  wire \c$87 ;
  wire \c$92 ;
  wire \c$98 ;
  wire carry;
  wire \carry$103 ;
  wire \carry$108 ;
  wire \carry$114 ;
  wire \carry$120 ;
  wire \carry$124 ;
  wire \carry$130 ;
  wire \carry$135 ;
  wire \carry$141 ;
  wire \carry$145 ;
  wire \carry$151 ;
  wire \carry$156 ;
  wire \carry$162 ;
  wire \carry$167 ;
  wire \carry$169 ;
  wire \carry$171 ;
  wire \carry$179 ;
  wire \carry$184 ;
  wire \carry$188 ;
  wire \carry$195 ;
  wire \carry$197 ;
  wire \carry$199 ;
  wire \carry$207 ;
  wire \carry$211 ;
  wire \carry$216 ;
  wire \carry$218 ;
  wire \carry$25 ;
  wire \carry$35 ;
  wire \carry$39 ;
  wire \carry$47 ;
  wire \carry$51 ;
  wire \carry$62 ;
  wire \carry$66 ;
  wire \carry$71 ;
  wire \carry$79 ;
  wire \carry$83 ;
  wire \carry$88 ;
  wire \carry$99 ;
  wire carry101;
  wire carry53;
  wire carry63;
  wire carry79;
  input [11:0] code;
  wire [11:0] code;
  input [14:0] north;
  wire [14:0] north;
  wire [8:0] row0_0;
  wire [8:0] row0_1;
  wire [8:0] row0_2;
  wire [8:0] row0_3;
  output [15:0] south;
  wire [15:0] south;
  wire total;
  wire \total$106 ;
  wire \total$110 ;
  wire \total$112 ;
  wire \total$116 ;
  wire \total$126 ;
  wire \total$128 ;
  wire \total$132 ;
  wire \total$137 ;
  wire \total$147 ;
  wire \total$149 ;
  wire \total$153 ;
  wire \total$158 ;
  wire \total$165 ;
  wire \total$173 ;
  wire \total$175 ;
  wire \total$182 ;
  wire \total$186 ;
  wire \total$191 ;
  wire \total$20 ;
  wire \total$201 ;
  wire \total$203 ;
  wire \total$209 ;
  wire \total$214 ;
  wire \total$221 ;
  wire \total$29 ;
  wire \total$31 ;
  wire \total$41 ;
  wire \total$42 ;
  wire \total$53 ;
  wire \total$56 ;
  wire \total$58 ;
  wire \total$69 ;
  wire \total$73 ;
  wire \total$74 ;
  wire \total$86 ;
  wire \total$90 ;
  wire \total$93 ;
  wire \total$95 ;
  input [7:0] weight;
  wire [7:0] weight;
  assign \$1  = { code[0], code[0], code[0], code[0], code[0], code[0], code[0], code[0], code[0] } & { weight[7], weight };
  assign \$2  = ~ { weight[7], weight };
  assign \$3  = { code[1], code[1], code[1], code[1], code[1], code[1], code[1], code[1], code[1] } & \$2 ;
  assign \$4  = \$1  | \$3 ;
  assign \$5  = { code[2], code[2], code[2], code[2], code[2], code[2], code[2], code[2], code[2] } & { weight, 1'h0 };
  assign row0_0 = \$4  | \$5 ;
  assign \$6  = { code[3], code[3], code[3], code[3], code[3], code[3], code[3], code[3], code[3] } & { weight[7], weight };
  assign \$7  = ~ { weight[7], weight };
  assign \$8  = { code[4], code[4], code[4], code[4], code[4], code[4], code[4], code[4], code[4] } & \$7 ;
  assign \$9  = \$6  | \$8 ;
  assign \$10  = { code[5], code[5], code[5], code[5], code[5], code[5], code[5], code[5], code[5] } & { weight, 1'h0 };
  assign row0_1 = \$9  | \$10 ;
  assign \$11  = { code[6], code[6], code[6], code[6], code[6], code[6], code[6], code[6], code[6] } & { weight[7], weight };
  assign \$12  = ~ { weight[7], weight };
  assign \$13  = { code[7], code[7], code[7], code[7], code[7], code[7], code[7], code[7], code[7] } & \$12 ;
  assign \$14  = \$11  | \$13 ;
  assign \$15  = { code[8], code[8], code[8], code[8], code[8], code[8], code[8], code[8], code[8] } & { weight, 1'h0 };
  assign row0_2 = \$14  | \$15 ;
  assign \$16  = { weight[7], weight } ^ { code[11], code[11], code[11], code[11], code[11], code[11], code[11], code[11], code[11] };
  assign \$17  = { code[9], code[9], code[9], code[9], code[9], code[9], code[9], code[9], code[9] } & \$16 ;
  assign \$18  = { weight, 1'h0 } ^ { code[11], code[11], code[11], code[11], code[11], code[11], code[11], code[11], code[11] };
  assign \$19  = { code[10], code[10], code[10], code[10], code[10], code[10], code[10], code[10], code[10] } & \$18 ;
  assign row0_3 = \$17  | \$19 ;
  assign carry53 = north[0] & row0_0[0];
  assign bit54 = north[0] ^ row0_0[0];
  assign c = ~ carry53;
  assign carry63 = row0_1[0] & \total$20 ;
  assign bit64 = row0_1[0] ^ \total$20 ;
  assign \c$28  = ~ \total$29 ;
  assign carry79 = \total$41  & \total$42 ;
  assign bit80 = \total$41  ^ \total$42 ;
  assign \c$55  = ~ \total$56 ;
  assign carry101 = \total$73  & \total$74 ;
  assign bit102 = \total$73  ^ \total$74 ;
  assign \c$92  = ~ \total$93 ;
  assign \b$97  = ~ row0_0[8];
  assign bit129 = ~ \total$116 ;
  assign bit143 = ~ \total$137 ;
  assign \b$139  = ~ row0_1[8];
  assign \$20  = ~ \total$175 ;
  assign \b$177  = ~ row0_2[8];
  assign \$21  = ~ \total$175 ;
  assign \$22  = ~ \total$203 ;
  assign \a$204  = ~ north[14];
  assign \b$205  = ~ row0_3[8];
  assign \$23  = ~ \total$203 ;
  assign bit193 = ~ \total$214 ;
  assign bit197 = ~ \total$221 ;
  hbfp_adder_n0 a103 (
    .a(north[7]),
    .b(row0_0[7]),
    .c(\c$78 ),
    .carry(\c$98 ),
    .total(\b$85 )
  );
  hbfp_adder_n0 a106 (
    .a(row0_1[5]),
    .b(row0_2[3]),
    .c(\c$82 ),
    .carry(\c$102 ),
    .total(\a$89 )
  );
  hbfp_adder_n0 a109 (
    .a(row0_3[1]),
    .b(\b$85 ),
    .c(\c$87 ),
    .carry(\c$107 ),
    .total(\total$93 )
  );
  hbfp_adder_n0 a112 (
    .a(\a$89 ),
    .b(carry101),
    .c(\c$92 ),
    .carry(\c$113 ),
    .total(bit115)
  );
  hbfp_adder_n0 a116 (
    .a(north[8]),
    .b(\b$97 ),
    .c(\c$98 ),
    .carry(\c$119 ),
    .total(\b$105 )
  );
  hbfp_adder_n0 a119 (
    .a(row0_1[6]),
    .b(row0_2[4]),
    .c(\c$102 ),
    .carry(\c$123 ),
    .total(\a$109 )
  );
  hbfp_adder_n0 a122 (
    .a(row0_3[2]),
    .b(\b$105 ),
    .c(\c$107 ),
    .carry(\c$129 ),
    .total(\b$111 )
  );
  hbfp_adder_n0 a125 (
    .a(\a$109 ),
    .b(\b$111 ),
    .c(\c$113 ),
    .carry(\c$134 ),
    .total(\total$116 )
  );
  hbfp_adder_n0 a130 (
    .a(north[9]),
    .b(row0_1[7]),
    .c(\c$119 ),
    .carry(\c$140 ),
    .total(\a$125 )
  );
  hbfp_adder_n0 a133 (
    .a(row0_2[5]),
    .b(row0_3[3]),
    .c(\c$123 ),
    .carry(\c$144 ),
    .total(\b$127 )
  );
  hbfp_adder_n0 a136 (
    .a(\a$125 ),
    .b(\b$127 ),
    .c(\c$129 ),
    .carry(\c$150 ),
    .total(\a$131 )
  );
  hbfp_adder_n0 a139 (
    .a(\a$131 ),
    .b(\total$116 ),
    .c(\c$134 ),
    .carry(\c$155 ),
    .total(\total$137 )
  );
  hbfp_adder_n0 a144 (
    .a(north[10]),
    .b(\b$139 ),
    .c(\c$140 ),
    .carry(\c$161 ),
    .total(\a$146 )
  );
  hbfp_adder_n0 a147 (
    .a(row0_2[6]),
    .b(row0_3[4]),
    .c(\c$144 ),
    .carry(\c$166 ),
    .total(\b$148 )
  );
  hbfp_adder_n0 a150 (
    .a(\a$146 ),
    .b(\b$148 ),
    .c(\c$150 ),
    .carry(\a$168 ),
    .total(\a$152 )
  );
  hbfp_adder_n0 a153 (
    .a(\a$152 ),
    .b(\total$137 ),
    .c(\c$155 ),
    .carry(\b$170 ),
    .total(bit156)
  );
  hbfp_adder_n0 a157 (
    .a(north[11]),
    .b(row0_2[7]),
    .c(\c$161 ),
    .carry(\c$178 ),
    .total(\b$164 )
  );
  hbfp_adder_n0 a160 (
    .a(row0_3[5]),
    .b(\b$164 ),
    .c(\c$166 ),
    .carry(\c$183 ),
    .total(\c$172 )
  );
  hbfp_adder_n1 a163 (
    .a(\a$168 ),
    .b(\b$170 ),
    .c(\c$172 ),
    .carry(\b$187 ),
    .total(\total$175 )
  );
  hbfp_adder_n0 a168 (
    .a(north[12]),
    .b(\b$177 ),
    .c(\c$178 ),
    .carry(\c$194 ),
    .total(\b$181 )
  );
  hbfp_adder_n0 a171 (
    .a(row0_3[6]),
    .b(\b$181 ),
    .c(\c$183 ),
    .carry(\a$196 ),
    .total(\a$185 )
  );
  hbfp_adder_n0 a174 (
    .a(\a$185 ),
    .b(\b$187 ),
    .c(\c$189 ),
    .carry(\b$198 ),
    .total(bit177)
  );
  hbfp_adder_n0 a178 (
    .a(north[13]),
    .b(row0_3[7]),
    .c(\c$194 ),
    .carry(\c$206 ),
    .total(\c$200 )
  );
  hbfp_adder_n1 a181 (
    .a(\a$196 ),
    .b(\b$198 ),
    .c(\c$200 ),
    .carry(\b$210 ),
    .total(\total$203 )
  );
  hbfp_adder_n0 a186 (
    .a(\a$204 ),
    .b(\b$205 ),
    .c(\c$206 ),
    .carry(\a$215 ),
    .total(\a$208 )
  );
  hbfp_adder_n0 a189 (
    .a(\a$208 ),
    .b(\b$210 ),
    .c(\c$212 ),
    .carry(\b$217 ),
    .total(\total$214 )
  );
  hbfp_adder_n1 a194 (
    .a(\a$215 ),
    .b(\b$217 ),
    .c(\total$214 ),
    .carry(\$24 ),
    .total(\total$221 )
  );
  hbfp_adder_n0 a55 (
    .a(north[1]),
    .b(row0_0[1]),
    .c(c),
    .carry(\c$17 ),
    .total(bit58)
  );
  hbfp_adder_n0 a59 (
    .a(north[2]),
    .b(row0_0[2]),
    .c(\c$17 ),
    .carry(\c$24 ),
    .total(\total$20 )
  );
  hbfp_adder_n0 a65 (
    .a(north[3]),
    .b(row0_0[3]),
    .c(\c$24 ),
    .carry(\c$34 ),
    .total(\total$29 )
  );
  hbfp_adder_n0 a68 (
    .a(row0_1[1]),
    .b(carry63),
    .c(\c$28 ),
    .carry(\c$38 ),
    .total(bit71)
  );
  hbfp_adder_n0 a72 (
    .a(north[4]),
    .b(row0_0[4]),
    .c(\c$34 ),
    .carry(\c$46 ),
    .total(\total$41 )
  );
  hbfp_adder_n0 a75 (
    .a(row0_1[2]),
    .b(row0_2[0]),
    .c(\c$38 ),
    .carry(\c$50 ),
    .total(\total$42 )
  );
  hbfp_adder_n0 a81 (
    .a(north[5]),
    .b(row0_0[5]),
    .c(\c$46 ),
    .carry(\c$61 ),
    .total(\a$52 )
  );
  hbfp_adder_n0 a84 (
    .a(row0_1[3]),
    .b(row0_2[1]),
    .c(\c$50 ),
    .carry(\c$65 ),
    .total(\total$56 )
  );
  hbfp_adder_n0 a87 (
    .a(\a$52 ),
    .b(carry79),
    .c(\c$55 ),
    .carry(\c$70 ),
    .total(bit90)
  );
  hbfp_adder_n0 a91 (
    .a(north[6]),
    .b(row0_0[6]),
    .c(\c$61 ),
    .carry(\c$78 ),
    .total(\b$68 )
  );
  hbfp_adder_n0 a94 (
    .a(row0_1[4]),
    .b(row0_2[2]),
    .c(\c$65 ),
    .carry(\c$82 ),
    .total(\total$73 )
  );
  hbfp_adder_n0 a97 (
    .a(row0_3[0]),
    .b(\b$68 ),
    .c(\c$70 ),
    .carry(\c$87 ),
    .total(\total$74 )
  );
  assign a = north[1];
  assign b = row0_0[1];
  assign total = bit58;
  assign \a$15  = north[2];
  assign \b$16  = row0_0[2];
  assign carry = \c$17 ;
  assign \a$22  = north[3];
  assign \b$23  = row0_0[3];
  assign \carry$25  = \c$24 ;
  assign \a$26  = row0_1[1];
  assign \b$27  = carry63;
  assign \total$31  = bit71;
  assign \a$32  = north[4];
  assign \b$33  = row0_0[4];
  assign \carry$35  = \c$34 ;
  assign \a$36  = row0_1[2];
  assign \b$37  = row0_2[0];
  assign \carry$39  = \c$38 ;
  assign \a$44  = north[5];
  assign \b$45  = row0_0[5];
  assign \carry$47  = \c$46 ;
  assign \a$48  = row0_1[3];
  assign \b$49  = row0_2[1];
  assign \carry$51  = \c$50 ;
  assign \total$53  = \a$52 ;
  assign \b$54  = carry79;
  assign \total$58  = bit90;
  assign \a$59  = north[6];
  assign \b$60  = row0_0[6];
  assign \carry$62  = \c$61 ;
  assign \a$63  = row0_1[4];
  assign \b$64  = row0_2[2];
  assign \carry$66  = \c$65 ;
  assign \a$67  = row0_3[0];
  assign \total$69  = \b$68 ;
  assign \carry$71  = \c$70 ;
  assign \a$76  = north[7];
  assign \b$77  = row0_0[7];
  assign \carry$79  = \c$78 ;
  assign \a$80  = row0_1[5];
  assign \b$81  = row0_2[3];
  assign \carry$83  = \c$82 ;
  assign \a$84  = row0_3[1];
  assign \total$86  = \b$85 ;
  assign \carry$88  = \c$87 ;
  assign \total$90  = \a$89 ;
  assign \b$91  = carry101;
  assign \total$95  = bit115;
  assign \a$96  = north[8];
  assign \carry$99  = \c$98 ;
  assign \a$100  = row0_1[6];
  assign \b$101  = row0_2[4];
  assign \carry$103  = \c$102 ;
  assign \a$104  = row0_3[2];
  assign \total$106  = \b$105 ;
  assign \carry$108  = \c$107 ;
  assign \total$110  = \a$109 ;
  assign \total$112  = \b$111 ;
  assign \carry$114  = \c$113 ;
  assign \a$117  = north[9];
  assign \b$118  = row0_1[7];
  assign \carry$120  = \c$119 ;
  assign \a$121  = row0_2[5];
  assign \b$122  = row0_3[3];
  assign \carry$124  = \c$123 ;
  assign \total$126  = \a$125 ;
  assign \total$128  = \b$127 ;
  assign \carry$130  = \c$129 ;
  assign \total$132  = \a$131 ;
  assign \b$133  = \total$116 ;
  assign \carry$135  = \c$134 ;
  assign \a$138  = north[10];
  assign \carry$141  = \c$140 ;
  assign \a$142  = row0_2[6];
  assign \b$143  = row0_3[4];
  assign \carry$145  = \c$144 ;
  assign \total$147  = \a$146 ;
  assign \total$149  = \b$148 ;
  assign \carry$151  = \c$150 ;
  assign \total$153  = \a$152 ;
  assign \b$154  = \total$137 ;
  assign \carry$156  = \c$155 ;
  assign \total$158  = bit156;
  assign \a$159  = north[11];
  assign \b$160  = row0_2[7];
  assign \carry$162  = \c$161 ;
  assign \a$163  = row0_3[5];
  assign \total$165  = \b$164 ;
  assign \carry$167  = \c$166 ;
  assign \carry$169  = \a$168 ;
  assign \carry$171  = \b$170 ;
  assign \total$173  = \c$172 ;
  assign \a$176  = north[12];
  assign \carry$179  = \c$178 ;
  assign \a$180  = row0_3[6];
  assign \total$182  = \b$181 ;
  assign \carry$184  = \c$183 ;
  assign \total$186  = \a$185 ;
  assign \carry$188  = \b$187 ;
  assign \total$191  = bit177;
  assign \a$192  = north[13];
  assign \b$193  = row0_3[7];
  assign \carry$195  = \c$194 ;
  assign \carry$197  = \a$196 ;
  assign \carry$199  = \b$198 ;
  assign \total$201  = \c$200 ;
  assign \carry$207  = \c$206 ;
  assign \total$209  = \a$208 ;
  assign \carry$211  = \b$210 ;
  assign \carry$216  = \a$215 ;
  assign \carry$218  = \b$217 ;
  assign \c$219  = \total$214 ;
  assign south = { bit197, bit193, bit185, bit177, bit167, bit156, bit143, bit129, bit115, bit102, bit90, bit80, bit71, bit64, bit58, bit54 };
  assign bit167 = \total$175 ;
  assign \c$189  = \total$175 ;
  assign bit185 = \total$203 ;
  assign \c$212  = \total$203 ;
endmodule
module hbfp_adder_n0(b, c, total, carry, a);
  wire \$1 ;
  wire \$10 ;
  wire \$11 ;
  wire \$12 ;
  wire \$13 ;
  wire \$2 ;
  wire \$3 ;
  wire \$4 ;
  wire \$5 ;
  wire \$6 ;
  wire \$7 ;
  wire \$8 ;
  wire \$9 ;
  input a;
  wire a;
  input b;
  wire b;
  input c;
  wire c;
  output carry;
  wire carry;
  wire half;
  output total;
  wire total;
  assign \$1  = a | b;
  assign \$2  = a & b;
  assign \$3  = ~ \$2 ;
  assign half = \$1  & \$3 ;
  assign \$4  = ~ c;
  assign \$5  = half & \$4 ;
  assign \$6  = ~ \$5 ;
  assign \$7  = ~ c;
  assign \$8  = half | \$7 ;
  assign total = \$6  & \$8 ;
  assign \$9  = a | b;
  assign \$10  = ~ half;
  assign \$11  = ~ c;
  assign \$12  = \$10  | \$11 ;
  assign \$13  = \$9  & \$12 ;
  assign carry = ~ \$13 ;
endmodule
module hbfp_adder_n1(b, c, total, carry, a);
  wire \$1 ;
  wire \$10 ;
  wire \$11 ;
  wire \$2 ;
  wire \$3 ;
  wire \$4 ;
  wire \$5 ;
  wire \$6 ;
  wire \$7 ;
  wire \$8 ;
  wire \$9 ;
  input a;
  wire a;
  input b;
  wire b;
  input c;
  wire c;
  output carry;
  wire carry;
  wire half;
  output total;
  wire total;
  assign \$1  = a | b;
  assign \$2  = a & b;
  assign \$3  = ~ \$2 ;
  assign half = \$1  & \$3 ;
  assign \$4  = half & c;
  assign \$5  = ~ \$4 ;
  assign \$6  = half | c;
  assign \$7  = \$5  & \$6 ;
  assign total = ~ \$7 ;
  assign \$8  = ~ a;
  assign \$9  = ~ b;
  assign \$10  = \$8  & \$9 ;
  assign \$11  = half & c;
  assign carry = \$10  | \$11 ;
endmodule
