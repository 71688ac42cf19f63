drop table activity;
