-- fuzz: seed=1 n=1009
-- The record of each bin that comes first in an order of all components: too wide for a word, but one of the elements.
type order = {time: i32, place: i32, amount: f32}
def newer (a: order) (b: order) : order =
  if a.time > b.time || (a.time == b.time && (a.place < b.place || (a.place == b.place && a.amount >= b.amount))) then a else b

-- gen: is=whole:-2..40 orders.time=whole:0..20 orders.place=whole:0..3 orders.amount=whole:0..5
entry records [n] (is: [n]i32) (orders: [n]order) : [37]order =
  histogram newer {time = i32.lowest, place = i32.highest, amount = f32.lowest} 37 is orders
